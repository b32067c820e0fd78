"""`step` as a generator, and the exact law of the heat equation: variances, scores and the floors of a task."""

from __future__ import annotations

import functools
import json
import math

import numpy as np
import pytest
import torch

import spdebench as sb
from spdebench import spec
from spdebench.engines import memory
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.metrics.law import law_scores
from spdebench.models import model
from spdebench.models.step import StepModel
from spdebench.models.step.ensemble import gaussian_crps
from spdebench.models.step.report import residual_deviations, residual_table
from spdebench.models.step.residual import Kind, fit_residual
from spdebench.models.step.rollout import Paths
from spdebench.noise import PartialNoise
from spdebench.solvers import seen_noise, simulate
from spdebench.tasks import Batch, Task, TaskSpec, law_floor
from spdebench.tasks.law_floor import GaussianLaw, conditional_mean, estimated_seconds, exact_gaussian, independent
from spdebench.training.law_rows import CONDITIONAL_MEAN, EXACT_LAW, LawRowSpec, measure

TINY = {"points": 16, "truncation": 12, "frames": 8, "steps": 8, "sigma": 1.0, "kappa": 0.2}
HEAT = sb.equation("heat", **TINY)


def fitted(seen: int, noise_type: str = "additive") -> tuple[StepModel, Batch]:
    """`step` with a residual, fitted on 160 samples, and twelve other inputs."""
    return _fitted(seen, noise_type)


@functools.cache
def _fitted(seen: int, noise_type: str) -> tuple[StepModel, Batch]:
    eq, n = HEAT.replace(noise_type=noise_type), 160
    found = model("step", TaskSpec(inputs="u0+xi", seen=seen).setting(eq), stages=1, history=0)
    assert isinstance(found, StepModel)
    paths = simulate(eq, 0, range(n))
    found.calibrate({"u0": paths.u0, "dw": seen_noise(eq, 0, range(n), seen)}, paths.u)
    rows = range(n, n + 12)
    return found, Batch(simulate(eq, 0, rows).u0, seen_noise(eq, 0, rows, seen), (eq,), torch.zeros(12).long())


@pytest.mark.parametrize("seen", [0, 4])
def test_the_simulated_law_of_the_heat_equation_is_the_exact_one(seen):
    """Variance of each driven mode at all frames, 12 inputs x 100 members: 4.5 standard errors of the variance of 1200
    normal numbers, and 5 % for the regression on 840 steps. The mean is that with the seen noise alone."""
    found, batch = fitted(seen)
    draws = found.sample(batch, 100).double()
    law = GaussianLaw(HEAT, seen)
    exact = law.variance()[1:]
    grid = found.setting.grid
    away = grid.transform(draws - draws.mean(1, keepdim=True))[:, :, 1:]
    variance = away.abs().square().sum((0, 1)) / (12 * 99)
    driven = exact[-1] > 1e-6
    bound = 4.5 * math.sqrt(2 / 1188) + 0.05
    assert int(driven.sum()) == (7 if seen == 0 else 4)
    assert float((variance / exact - 1)[:, driven].abs().max()) < bound
    assert float(variance[:, ~driven].max()) < 1e-3 * float(exact[-1].max())
    gap = (draws.mean(1) - law.mean(0, range(160, 172)))[:, 1:].flatten(1).norm(dim=1)
    assert float(gap.max() / draws[:, :, 1:].std(1).flatten(1).norm(dim=1).mean()) < 0.35  # 1/sqrt(100), and the fit


def test_its_energy_score_is_that_of_the_true_law():
    """Within 3 % of another ensemble of the true law; the exact Gaussian law within 1 %."""
    found, batch = fitted(4)
    rows = [s for s in range(160, 172) for _ in range(48)]
    numbers = tuple(range(1, 49)) * 12
    members = simulate(HEAT, 0, rows, partial=PartialNoise(4, numbers)).u.unflatten(0, (12, 48))
    truth, other = members[:, :24], members[:, 24:]
    guesses = {
        "step": found.sample(batch, 24),
        "exact": GaussianLaw(HEAT, 4).draw(0, range(160, 172), 24),
        "law": other,
    }
    score = {k: law_scores(x, truth, found.setting.grid, resamples=0)["energy_score"].value for k, x in guesses.items()}
    assert score["step"] < 1.03 * score["law"] and abs(score["exact"] / score["law"] - 1) < 0.01


def test_the_residual_has_the_deviation_of_the_unseen_noise():
    """Mode by mode within 5 %; `show` prints both."""
    found, _ = fitted(0)
    exact = residual_deviations(found.setting)
    assert exact is not None
    driven = exact > 1e-6
    assert float((found.residual().laws[-1].deviation / exact - 1)[driven].abs().max()) < 0.05
    row = next(row for row in residual_table(found) if row["k"] == 2)
    assert float(row["deviation"]) == pytest.approx(float(row["generator"]), rel=0.05)


def test_noise_that_is_rounding_has_no_coefficient():
    """With seen=4 the harmonics 0, 1 and 2 of dw are seen, and those beyond are rounding of float32."""
    found, _ = fitted(4)
    weight = found.coefficients()["dw"]
    assert bool((weight[3:] == 0).all()) and float((weight[:3] / residual_gain() - 1).abs().max()) < 1e-3


def residual_gain() -> torch.Tensor:
    """c_dw of linearly implicit Euler in the harmonics 0, 1 and 2."""
    h = 1 / TINY["points"]
    eigenvalue = (2 / h * torch.sin(math.pi * torch.arange(3) * h)) ** 2
    return 1 / (1 + HEAT.horizon / TINY["steps"] * eigenvalue)


def test_multiplicative_noise_has_a_residual_that_depends_on_the_state():
    """d u = u_xx dt + u dW: the residual is about proportional to u."""
    found, _ = fitted(0, "multiplicative")
    law = found.residual()
    assert law.kind.shape != "plain" and law.laws[0].table is not None
    state = torch.tensor([0.5, 1.5], dtype=torch.float64)
    low, high = (law.laws[0].table(state, torch.full_like(state, z)) for z in (-1.0, 1.0))
    small, large = (high - low).tolist()
    assert 2 < large / small < 4


@pytest.mark.parametrize("noise_type", ["additive", "multiplicative"])
def test_a_member_is_a_function_of_seed_sample_and_number(noise_type):
    found, batch = fitted(0, noise_type)
    every = found.sample(batch, 4, seed=3)
    part = Batch(batch.u0[5:7], batch.dw[5:7], batch.equations, torch.zeros(2).long())
    torch.testing.assert_close(found.sample(part, 2, seed=3, first=1, samples=torch.tensor([5, 6])), every[5:7, 1:3])
    for other in (every[0, 1], every[1, 0], found.sample(batch, 1, seed=4)[0, 0]):
        assert float((every[0, 0] - other).abs().max()) > 1e-3


def test_members_stay_finite_and_in_range_far_from_the_training_data():
    found, batch = fitted(0, "multiplicative")
    wild = Batch(1e4 * batch.u0, batch.dw, batch.equations, batch.source)
    draws = found.sample(wild, 3)[:, :, 1:]
    assert bool(torch.isfinite(draws).all()) and float(draws.abs().max()) < 50


def test_correlated_residuals_are_found_and_drawn():
    """Paths whose residual has the autocorrelation 0.6 are simulated with it: 4.5 standard errors of 480 pairs."""
    found = model("step", TaskSpec(inputs="u0+xi", seen=0).setting(HEAT))
    assert isinstance(found, StepModel)
    stepper, generator = found.stepper(), torch.Generator().manual_seed(0)  # u_{n+1} = u_n before a fit
    residual = torch.randn(60, 8, 16, generator=generator, dtype=torch.float64)
    for n in range(1, 8):
        residual[:, n] = 0.6 * residual[:, n - 1] + 0.8 * residual[:, n]
    u, dw = torch.zeros(60, 9, 16, dtype=torch.float64), torch.zeros(60, 9, 16)
    for n in range(8):
        u[:, n + 1] = stepper.rollout(u[:, n], dw[:, :2])[:, 1] + residual[:, n]
    law = fit_residual(stepper, Paths(u, dw), Kind(memory=True))
    assert float((law.laws[0].memory.real - 0.6).abs().mean()) < 0.06
    draws = law.start(torch.arange(400), found.setting.grid)
    zero = torch.zeros(400, 9, dtype=torch.complex128)
    steps = torch.stack([draws(n, zero, zero) for n in range(6)])
    joint = (steps[:-1].conj() * steps[1:]).mean((0, 1)).real / steps.abs().square().mean((0, 1))
    assert float((joint - 0.6).abs().max()) < 0.12


def test_a_law_is_saved_and_a_hostile_file_refused():
    found, batch = fitted(0, "multiplicative")
    state = found.state_dict()

    def load(**changes: torch.Tensor) -> StepModel:
        copy = model("step", found.setting, stages=1, history=0)
        copy.load_state_dict({**state, **changes})
        assert isinstance(copy, StepModel)
        return copy

    assert torch.equal(load().sample(batch, 2), found.sample(batch, 2))
    modes, tables = state["residual_modes"], state["residual_tables"]
    kind = json.dumps({**found.description, "residual": {"shape": "other"}}).encode()
    for bad in (
        {"residual_modes": modes[:, :2]},
        {"residual_modes": modes * math.inf},
        {"residual_modes": modes.index_fill(1, torch.tensor([2]), 2.0)},
        {"residual_tables": tables[:, :, 1:]},
        {"residual_tables": tables.flip(1)},
        {"found": torch.frombuffer(bytearray(kind), dtype=torch.uint8)},
    ):
        with pytest.raises(RuntimeError, match="do not fit what was chosen"):
            load(**bad)


def test_where_all_noise_is_seen_nothing_is_drawn():
    """seen=J is the task of the path: the same buffers as ever, and every member is the prediction."""
    plain, law = (model("step", TaskSpec(inputs="u0+xi", seen=seen).setting(HEAT)) for seen in (None, 12))
    assert set(plain.state_dict()) == set(law.state_dict()) == {"found", "weights", "envelope", "intervals"}
    batch = fitted(0)[1]
    assert torch.equal(law.sample(batch, 2)[:, 1], law.predict(batch)) and not law.draws_members


def test_the_crps_of_a_normal_law():
    """Against E|Z - y| - E|Z - Z'|/2 of 4e5 draws: three digits."""
    z = torch.randn(400_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for y in (0.0, 1.3):
        expected = float((z - y).abs().mean() - 1 / math.sqrt(math.pi))
        assert float(gaussian_crps(torch.tensor(y), torch.tensor(1.0))) == pytest.approx(expected, abs=4e-3)


# --- floors --------------------------------------------------------------------------------------------------------
def simulated(eq: sb.Equation, m: int) -> torch.Tensor:
    """The members 1..m of sample 3."""
    with without_aliasing_warning():
        return simulate(eq, 0, [3] * m, partial=PartialNoise(4, tuple(range(1, m + 1)))).u.double()


@pytest.mark.parametrize(
    "fields",
    [{}, {"boundary": "dirichlet"}, {"edition": "converged"}, {"steps": 16}, {"truncation": 24}],
    ids=["paper", "dirichlet", "converged", "two steps per frame", "aliasing"],
)
def test_the_exact_gaussian_law_is_that_of_simulated_members(fields):
    """Mean and variance per mode and frame of 400 members: 4.5 standard errors."""
    eq = HEAT.replace(**fields)
    law, m = GaussianLaw(eq, 4), 400
    for members in (
        simulated(eq, m),
        law.draw(0, [3], m)[0].double(),
    ):
        mean = law.mean(0, [3])[0].double()
        away = eq.grid.transform(members - mean)[:, 1:]
        exact = law.variance()[1:]
        if eq.edition == "converged":
            exact = exact[:, : away.shape[-1]]
        driven = exact[-1] > 1e-9
        found = away.abs().square().mean(0)
        assert float((found / exact - 1)[:, driven].abs().max()) < 4.5 * math.sqrt(2 / m)
        assert float((away.mean(0).abs() / exact.sqrt())[:, driven].max()) < 4.5 / math.sqrt(m)


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    path = sb.generate(HEAT, n=20, seen=4, members=3, out=tmp_path_factory.mktemp("floor"))
    return Task(path, seen=4)


def test_floors_of_a_task(task):
    """Further members begin after the stored ones, blocks agree, and the mean is that of the members."""
    some = independent(task, 4)
    assert some.shape == (3, 4, *task.test.shape)
    assert torch.equal(independent(task, 4, inputs=slice(1, 2))[0], some[1])
    assert np.array_equal(independent(task, 3, first=0).numpy(), task.members())
    torch.testing.assert_close(conditional_mean(task, 4)[:, 0], some.mean(1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "free_memory", lambda: some.nbytes - 1)
        with pytest.raises(UserError, match=r"4 members for each of 3 inputs: .* GB are free; choose fewer members"):
            independent(task, 4)
    assert exact_gaussian(task, 2).shape == (3, 2, *task.test.shape)


def test_the_time_of_a_few_members_tells_that_of_all(task, monkeypatch):
    clock = iter((10.0, 12.0))
    monkeypatch.setattr(law_floor.time, "perf_counter", lambda: next(clock))
    assert estimated_seconds(task, 64) == pytest.approx(2.0 / law_floor.TRIED * 64 * len(task.test))


def test_the_record_of_the_true_law_also_scores_the_exact_law_of_heat(task):
    """Three inputs and 3 true members: the scores of both laws agree within 20 %, and the mean scores worse."""
    data = task.datasets[0]
    record = measure(LawRowSpec(data.spec, spec.to_dict(task.spec), 3), data)
    exact, mean = (record.value("energy_score", part) for part in (EXACT_LAW, CONDITIONAL_MEAN))
    assert exact == pytest.approx(record.value("energy_score"), rel=0.2)
    assert exact is not None and mean is not None and mean > exact


def test_other_equations_have_no_exact_law():
    for eq in (sb.equation("phi41", **TINY), HEAT.replace(noise_type="multiplicative")):
        with pytest.raises(UserError, match="such as heat"):
            GaussianLaw(eq, 4)
