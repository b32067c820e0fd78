"""Fresh noise in place of the functions that are not seen: its variances, its complement, and its random numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from spdebench.equations import Equation, equation
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.grids import Grid
from spdebench.noise import Basis, UnseenNoise, Wiener, make_basis
from spdebench.noise.unseen import fill_states
from spdebench.solvers import seen_noise, simulate
from spdebench.tasks import Setting, TaskSpec

BASES = [  # name, J, K, dimensions, points
    ("fourier", 8, 2, 1, 16),
    ("fourier", 4, 2, 2, 8),
    ("fourier", 2, 0, 3, 4),
    ("sine", 7, 3, 1, 8),
    ("sine", 4, 2, 2, 6),
    ("sine", 3, 1, 3, 4),
    ("haar", 16, 5, 1, 16),
]


def functions_on(basis: Basis, grid: Grid) -> tuple[torch.Tensor, torch.Tensor]:
    """All functions of a basis at the points (functions, points), and their places (functions, 2) among the normals."""
    places = (basis.index > 0).nonzero()
    z = torch.zeros(len(places), basis.pairs, 2, dtype=torch.float64)
    z[torch.arange(len(places)), places[:, 0], places[:, 1]] = 1
    return basis.physical(torch.view_as_complex(z), grid).flatten(1), places


@pytest.mark.parametrize(("name", "top", "seen", "dim", "points"), BASES)
def test_every_unseen_function_has_unit_variance_and_every_seen_one_is_zero(name, top, seen, dim, points):
    """Amplitudes are inner products with the functions, which are orthonormal on the grid; 4000 draws, 5 errors."""
    basis = make_basis(name, top, dim)
    boundary = "dirichlet" if name == "sine" else "periodic"
    grid = Grid((points,) * dim, (0.0,) * dim, (1.0,) * dim, boundary)
    wiener = Wiener(basis, torch.ones(basis.index.shape, dtype=torch.float64), grid)
    unseen, dt = UnseenNoise(wiener, seen), 0.3
    values, places = functions_on(basis, grid)
    kept = basis.kept_by(seen)[places[:, 0], places[:, 1]]
    assert unseen.functions == int((~kept).sum()) == basis.functions - int(kept.sum())
    states, each = fill_states(1, range(1000), 0, "cpu"), 4
    drawn = unseen.draw(states, each, dt)
    assert drawn.dtype == torch.float32 and not drawn[:, 0].any()
    amplitudes = (drawn[:, 1:].flatten(2).double() @ values.T * math.prod(grid.spacing)).flatten(0, 1)
    assert float(amplitudes[:, kept].abs().max() if kept.any() else 0.0) < 1e-6
    covariance = amplitudes.T @ amplitudes / (len(amplitudes) * dt)
    expected = torch.diag((~kept).double())
    assert float((covariance - expected).abs().max()) < 5 * math.sqrt(2 / len(amplitudes))
    steps = drawn[:, 1:].flatten(2).double()
    between = (steps[:, 0] * steps[:, 1]).mean(1) / steps.square().mean()  # increments are independent
    assert abs(float(between.mean())) < 5 * float(between.std()) / math.sqrt(len(between))


def stored_equations() -> list[Equation]:
    small = {"points": 32, "frames": 4, "steps": 4, "truncation": 16}
    return [
        equation("phi41", **small),
        equation("phi41", **small, edition="converged"),
        equation("phi41", **small | {"truncation": 32}),  # Nyquist
        equation("phi41", **small, basis="haar", edition="converged"),
        equation("phi41", **small, boundary="dirichlet", noise="q_wiener"),
        equation("kpz", **small, edition="converged"),
        equation("wave", **small | {"steps": 12}),
        equation("phi42", **small | {"points": 8, "truncation": 8, "horizon": 0.01}),
        equation("phi43", **small | {"points": 8, "truncation": 4, "horizon": 0.01}),
        equation("nse", points=8, truncation=12, solve_points=16, frames=2, steps=4, horizon=0.01),
    ]


@pytest.mark.parametrize("eq", stored_equations(), ids=lambda eq: f"{eq.name}-{eq.basis}-{eq.edition}-{eq.truncation}")
@pytest.mark.filterwarnings("ignore::spdebench.errors.AliasingWarning")
def test_seen_and_unseen_are_all_of_the_stored_noise(eq):
    """With the true eigenvalues and the numbers of the dataset the unseen part is dw - dw_seen, to rounding."""
    seen = 2
    setting = replace(TaskSpec(inputs=eq.task).setting(eq), seen=seen)
    with without_aliasing_warning():
        wiener = eq.wiener()
        rest = simulate(eq, 5, range(2)).dw - seen_noise(eq, 5, range(2), seen)
    plain = replace(wiener, roots=torch.ones_like(wiener.roots))
    z = torch.cat(list(plain.blocks(5, range(2), eq.steps, eq.horizon, group=eq.steps // eq.frames)), dim=1)
    found = setting.unseen(law=True).series(z)
    assert torch.allclose(found.float(), rest[:, 1:], atol=1e-5 * float(rest.abs().max()))
    assert setting.partial and setting.unseen().functions == setting.unseen(law=True).functions


def test_a_setting_states_the_seen_truncation():
    eq = equation("phi41", points=16, truncation=8)
    whole = TaskSpec().setting(eq)
    assert whole.seen is None and not whole.partial and "seen" not in whole.to_dict()
    part = TaskSpec(seen=4).setting(eq)
    assert Setting.from_dict(part.to_dict()) == part and part.partial
    assert not TaskSpec(seen=8).setting(eq).partial


def test_draws_are_a_function_of_seed_epoch_sample_and_draw():
    unseen = TaskSpec(seen=4).setting(equation("phi41", points=16, truncation=8)).unseen()

    def drawn(seed: int = 0, samples: range = range(6), draw: int = 0, epoch: int | None = None) -> torch.Tensor:
        return unseen.draw(fill_states(seed, samples, draw, "cpu", epoch), 3, 0.1)

    assert torch.equal(drawn()[2:5], drawn(samples=range(2, 5)))
    several = [drawn(), drawn(seed=1), drawn(draw=1), drawn(epoch=0), drawn(epoch=1), drawn(epoch=0, draw=1)]
    for i, one in enumerate(several):
        for other in several[:i]:
            assert abs(float(torch.corrcoef(torch.stack((one[:, 1:].flatten(), other[:, 1:].flatten())))[0, 1])) < 0.4


def test_a_setting_has_the_truncations_that_a_file_has():
    """J itself is all of the noise, except with resolve_mollifier, whose noise has modes beyond J."""
    small = {"points": 64, "frames": 4, "steps": 4, "truncation": 16, "kappa": 0.1}
    usual, beyond = (equation("kpz", **small, resolve_mollifier=resolved) for resolved in (False, True))
    assert not TaskSpec(seen=16).setting(usual).partial and TaskSpec(seen=14).setting(beyond).partial
    with pytest.raises(UserError, match="seen=J=16 is not all of the noise"):
        TaskSpec(seen=16).setting(beyond).unseen()
    for eq, seen in ((usual, 18), (usual, -2), (beyond, 18)):
        with pytest.raises(UserError, match=f"seen must be between 0 and J=16, got {seen}"):
            TaskSpec().setting(eq).unseen(law=True, seen=seen)
