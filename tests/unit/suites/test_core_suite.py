"""The core suite: pinned specs, sizes, finite paths, coupled noise of its shifts, and its numbers."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
import torch

from spdebench.data.distance import lost_variance
from spdebench.equations import Equation
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.models import MODELS
from spdebench.paper.catalogue import table
from spdebench.paper.tables import core
from spdebench.report.suite_folder import page_rows
from spdebench.solvers import simulate
from spdebench.suites import CORE, SUITES, SuiteProblem
from spdebench.suites.measure import growth, measure
from spdebench.suites.numbers import measured
from spdebench.tasks import TaskSpec
from spdebench.tasks.floor import floor
from spdebench.training import TrainOptions

DIGESTS = {
    "phi41": "bd78251f14",
    "kpz": "b8a6df73d3",
    "burgers": "8cfbb1f725",
    "allen_cahn": "4cc3c62f72",
    "kdv": "4edd5ebbd4",
    "ks": "9da93127b1",
    "phi42": "2869780f35",
    "nse": "cf73a74123",
}
"""Hashes of the datasets: a change here is another benchmark and needs another name."""

each_problem = pytest.mark.parametrize("problem", CORE.problems, ids=lambda p: p.name)


@each_problem
def test_every_value_is_pinned(problem: SuiteProblem):
    """No default of an equation, of a task, of a model or of training enters a problem or its table."""
    assert set(problem.fields) == {f.name for f in dataclasses.fields(problem.build())}
    assert {"inputs", *problem.task} == {f.name for f in dataclasses.fields(TaskSpec)}
    assert problem.spec.digest == DIGESTS[problem.name]


def test_the_table_pins_configurations_and_options():
    """All options but ``draws``, which belongs to loss=energy and is refused with another loss."""
    assert {"seed", "draws", *core.OPTIONS} == {f.name for f in dataclasses.fields(TrainOptions)}
    for model, values in core.ROWS.items():
        assert set(values) == {f.name for f in dataclasses.fields(MODELS[model].config_class)}, model
        assert values.get("kernel", "exact") == "exact"


@each_problem
def test_sizes_and_shifts(problem: SuiteProblem):
    eq, datasets = problem.build(), problem.datasets()
    assert eq.edition == "converged" and eq.truncation < eq.points and eq.steps == eq.frames and eq.kappa > 0
    assert sum(d.n * d.sample_bytes for d in datasets.values()) < 1e9
    assert len({d.digest for d in datasets.values()}) == len(datasets)
    for label, spec in datasets.items():
        other = spec.equation
        assert other.truncation < other.points
        assert (spec.seed == problem.seed) == (label != "horizon x2")
        assert other.horizon / other.frames == pytest.approx(eq.horizon / eq.frames)


def test_the_floor_is_low():
    assert floor(CORE.choose("burgers")[0].build(), samples=range(1)).value < 1e-3


@pytest.mark.parametrize(
    "problem",
    [p if p.name in ("phi41", "ks") else pytest.param(p, marks=pytest.mark.slow) for p in CORE.problems],
    ids=lambda p: p.name,
)
def test_paths_are_finite_and_the_floor_is_low(problem: SuiteProblem):
    """`simulate` raises an error for a path that is not finite; here on the problem and on all of its shifts."""
    for spec in problem.datasets().values():
        simulate(spec.equation, spec.seed, range(4))
    assert floor(problem.build(), samples=range(2)).value < 1e-3


@each_problem
def test_shifts_have_the_same_noise_as_far_as_both_resolve_it(problem: SuiteProblem):
    """sigma, u0: the same increments to the bit; J, grid: the same modes up to rounding; horizon: another seed."""
    eq = problem.build()
    own = _increments(eq, problem.seed)
    for shift in problem.shifts:
        other = problem.shift_spec(shift).equation
        dw = _increments(other, shift.seed)
        if shift.label in ("sigma x2", "u0 x2"):
            assert torch.equal(dw, own), shift.label
        elif shift.label == "horizon x2":
            assert not torch.allclose(dw[:, : eq.frames], own)
        elif shift.label == "grid x2" or problem.name != "kpz":  # the mollifier of kpz has the width 1/J
            top = min(eq.truncation, other.truncation) // 2
            a, b = (_low_modes(g, x, top) for g, x in ((eq.solving_grid, own), (other.solving_grid, dw)))
            assert torch.allclose(a, b, atol=1e-12 * float(a.abs().max())), shift.label


def _increments(eq: Equation, seed: int) -> torch.Tensor:
    """dW of all stored intervals of one sample on the solving grid."""
    wiener = eq.wiener()
    blocks = wiener.blocks(seed, [3], eq.steps, eq.horizon, group=1)
    return torch.cat([wiener.physical(z) for z in blocks], dim=1)


def _low_modes(grid: Grid, dw: torch.Tensor, top: int) -> torch.Tensor:
    """The coefficients |k_i| <= top, on the smallest grid that holds them."""
    small = grid.with_points(2 * top + 2)
    one = grid.transform(torch.ones(grid.points, dtype=torch.float64))
    return grid.resize(grid.transform(dw), small) / float(one.abs().max())


# --- numbers ------------------------------------------------------------------------------------------------------
def test_every_problem_is_measured_and_meets_what_the_suite_promises():
    assert list(measured()) == [p.name for p in CORE.problems]
    for name, numbers in measured().items():
        assert numbers["floor"] <= 1e-3 and numbers["linear"] >= 0.2 and numbers["not_finite"] == 0, name
        assert numbers["residual"] <= 1e-3, name


def test_the_committed_numbers_are_those_of_the_problem():
    """Measured again on fewer samples: the error of `linear` agrees within a quarter, the floor is below 1e-3."""
    again = measure(CORE.choose("phi41")[0].build(), n=80)
    known = measured()["phi41"]
    assert again.linear == pytest.approx(known["linear"], rel=0.25)
    assert again.std == pytest.approx(known["std"], rel=0.25)
    assert again.floor < 1e-3 and again.not_finite == 0


def test_the_page_shows_the_committed_numbers():
    text = (Path(__file__).parents[3] / "docs" / "core.md").read_text(encoding="utf-8")
    assert "\n".join(page_rows()) in text
    assert all(f"### {p.name}\n\n{p.why}" in text for p in CORE.problems)


def test_lost_variance_is_that_of_a_mode():
    """One mode: 1 - (2/l dt) tanh(l dt/2), for any horizon; the constant mode does not count."""
    eq = CORE.choose("phi41")[0].build().replace(mass=0.0, frames=8, steps=8, horizon=0.08)
    x = eq.grid.coordinates(0)
    dw = torch.zeros(1, 9, eq.points, dtype=torch.float64)
    dw[:, 1:] = 5.0 + torch.cos(2 * math.pi * 2 * x)
    rate = (4 * math.pi) ** 2 * 0.01
    assert lost_variance(eq, dw) == pytest.approx(1 - 2 / rate * math.tanh(rate / 2), rel=1e-6)


def test_growth_of_a_perturbation_of_the_heat_equation():
    """Without noise and drift the perturbation sin(2 pi x) decays as exp(-4 pi^2 T)."""
    eq = CORE.choose("kpz")[0].build().replace(coupling=0.0, sigma=0.0, horizon=0.02)
    assert growth(eq, simulate(eq, 0, range(2))) == pytest.approx(math.exp(-4 * math.pi**2 * 0.02), rel=1e-3)


# --- the table and names ------------------------------------------------------------------------------------------
def test_cells_of_models_with_a_fixed_grid_or_horizon_are_absent():
    cells = table("core").cells(1)
    assert all(c.shift is None or c.shift.equation.edition == "converged" for c in cells)
    longer = {c.model for c in cells if c.column == "horizon x2"}
    assert longer == {"step", "ncde-fno", "solver"}
    assert "deeponet" not in {c.model for c in cells if c.column == "grid x2"}
    assert {"mean", "linear", "trees", "step", "fno", "nspde", "dlr-net", "deeponet", "ncde-fno", "gt", "wno"} <= {
        c.model for c in cells if c.group == "phi41" and c.column == "test"
    }


def test_a_name_that_does_not_exist_is_one_line():
    with pytest.raises(UserError, match="did you mean 'core'"):
        SUITES["cor"]
    with pytest.raises(UserError, match="unknown problem of the suite core 'phi4l'; did you mean 'phi41'"):
        CORE.choose("phi4l")
