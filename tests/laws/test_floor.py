"""The floor of a problem against closed forms: the conditional variance of a linear equation, and published values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

import spdebench as sb
from spdebench.equations import Equation
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.grids import Grid
from spdebench.solvers import simulate, solve
from spdebench.solvers.conditional import GivenNoise, conditional_solutions
from spdebench.tasks import floor as floors
from spdebench.tasks.floor import floor, given_solver_error


@dataclass(frozen=True, kw_only=True)
class LinearHeat(Equation, name="linear-heat"):
    """u_t = 0.05 u_xx + sigma xi, from u = 1."""

    truncation: int = 12
    points: int = 16
    frames: int = 8
    steps: int = 16

    def symbol(self, grid: Grid, device: torch.device | str = "cpu") -> Tensor:
        return 0.05 * grid.laplacian(difference=self.differences, device=device)

    def initial(self, grid: Grid, seed: int, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        return torch.ones(len(samples), *grid.points, dtype=torch.float64, device=device)


def conditional_variance(given: GivenNoise, size: float = 1.0) -> float:
    """tr G (I - A^+ A) G^T: u = G z + .. at small noise, A z what is given, z independent standard normals.

    G comes from the solver's answers to single increments at the points of its grid, ``size`` large.
    """
    eq = given.equation
    steps, points = eq.noise_steps, math.prod(eq.grid.points)
    roots = eq.eigenvalue_roots()
    unit = torch.diag(roots.flatten()) * math.sqrt(eq.horizon / steps)
    basis = eq.wiener().physical(torch.view_as_complex(unit.unflatten(-1, (-1, 2)).contiguous())).flatten(1)
    dw = torch.zeros((steps * points + 1, steps + 1, *eq.grid.points), dtype=torch.float64)
    dw[1:, 1:].flatten(1)[:] = size * torch.eye(steps * points, dtype=torch.float64)
    u0 = eq.initial(eq.grid, 0, [0]).expand(len(dw), *eq.grid.points)
    u = given.frames(solve(eq, u0, dw))[:, 1:].flatten(1)
    response = ((u[1:] - u[:1]) / size).reshape(steps, points, -1)
    seen = given.thin(torch.eye(points, dtype=torch.float64).unflatten(1, eq.grid.points)).flatten(1)
    per_step = torch.einsum("cp,npu->ncu", basis, response).flatten(0, 1)  # (steps coefficients, values of u)
    sums = torch.eye(steps, dtype=torch.float64).unflatten(1, (-1, given.group)).sum(2)
    stated = torch.kron(sums, basis @ seen)
    best = stated @ torch.linalg.lstsq(stated, per_step, driver="gelsd").solution
    return float(((per_step - best) ** 2).sum())


@pytest.mark.parametrize(("every", "stride"), [(1, 1), (2, 1), (1, 4), (4, 2)])
def test_draws_have_the_conditional_variance_of_a_linear_equation(every, stride):
    given = GivenNoise(LinearHeat(), every, stride)
    truths, draws = 400, 4
    u, drawn = conditional_solutions(given, 3, range(truths), draws)
    exact = conditional_variance(given)
    mean = drawn.mean(1)
    outer = (u - mean)[:, 1:].flatten(1).square().sum(1) * draws / (draws + 1)
    inner = (drawn - mean[:, None])[:, :, 1:].flatten(2).square().sum((1, 2)) / (draws - 1)
    for found in (outer, inner):
        error = float(found.std()) / math.sqrt(truths)
        assert error < 0.05 * exact
        assert abs(float(found.mean()) - exact) < 4 * error


def test_every_draw_keeps_the_given_noise():
    """With noise constant in time and all points given, every draw is the truth."""
    eq = LinearHeat(steps=8)
    assert GivenNoise(eq).complete
    u, drawn = conditional_solutions(GivenNoise(eq), 0, range(2), 2)
    assert float((drawn - u[:, None]).abs().max()) < 1e-12


def test_a_sine_basis_is_conditioned_too():
    eq = sb.equation("phi41", boundary="dirichlet", truncation=15, points=16, frames=8, steps=8, sigma=1e-3)
    given = GivenNoise(eq, 2, 4)
    u, drawn = conditional_solutions(given, 1, range(100), 4)
    found = (u - drawn.mean(1))[:, 1:].flatten(1).square().sum(1) * 4 / 5
    error = float(found.std()) / 10
    assert abs(float(found.mean()) - conditional_variance(given, 1e-3)) < 4 * error < 0.5 * float(found.mean())


@pytest.mark.parametrize("truncation", [8, 16])
def test_summed_increments_leave_the_floor_of_the_linear_equation(truncation):
    """phi42 at sigma 0.1 is nearly linear: the solver on summed increments is at the exact conditional floor."""
    eq = sb.equation("phi42", truncation=truncation, points=8, frames=20, steps=20, horizon=0.002)
    given = GivenNoise(eq, 5)
    with without_aliasing_warning():
        u = simulate(eq, 0, range(64), out_dtype=torch.float64).u[:, ::5][:, 1:]
        variance = conditional_variance(given, 1e-3)
    exact = math.sqrt(variance) * float(u.flatten(1).norm(dim=1).reciprocal().mean())
    solver, solver_error = given_solver_error(given, 0, range(64))
    found = floor(eq, every=5, samples=range(64), draws=4)
    assert found.kind == "conditional"
    assert abs(solver - exact) < 4 * solver_error < 0.1 * exact
    assert abs(found.value - exact) < 4 * found.error < 0.1 * exact


def test_a_file_that_stores_everything_has_no_floor_but_rounding():
    found = floor(sb.equation("phi41", points=32, truncation=16, frames=10, steps=10))
    assert found.kind == "exact"
    assert found.value < 1e-6


def test_a_problem_too_large_for_the_conditional_law_gives_the_solver(monkeypatch):
    monkeypatch.setattr(floors, "MOST_ENTRIES", 10)
    found = floor(LinearHeat(), stride=4, samples=range(8))
    assert found.kind == "solver"
    monkeypatch.undo()
    assert found.value > floor(LinearHeat(), stride=4, samples=range(8), draws=16).value


def test_sub_sampling_that_does_not_divide_is_one_line():
    with pytest.raises(UserError, match=r"every must divide the 8 intervals of .*, got 3"):
        floor(LinearHeat(), every=3)
    with pytest.raises(UserError, match=r"stride must divide the 16 points of .*, got 5"):
        floor(LinearHeat(), stride=5)
    with pytest.raises(UserError, match="draws must be at least 1"):
        floor(LinearHeat(), every=2, draws=0)


# --- values that were computed independently, with other integrators ------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"truncation": 64}, 0.233),
        ({"truncation": 32}, 0.183),
        ({"truncation": 64, "points": 32, "solve_points": 64}, 0.160),
        ({"truncation": 64, "storage": "spectral"}, 0.031),
        ({"truncation": 64, "points": 64, "solve_points": 64}, 0.0026),
        ({"truncation": 64, "spectrum": "reference"}, 0.0002),
    ],
)
def test_nse_has_these_floors(fields, expected):
    found = floor(sb.equation("nse", **{"spectrum": "paper", **fields}), samples=range(8), draws=8)
    assert abs(found.value - expected) < max(4 * found.error, 0.1 * expected, 5e-5)


@pytest.mark.parametrize(
    ("truncation", "expected"),
    [(32, 0.0346), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((64, 0.0652), (128, 0.1221)))],
)
def test_phi42_has_these_floors(truncation, expected):
    found = floor(sb.equation("phi42", truncation=truncation), every=5, samples=range(16), draws=4)
    assert abs(found.value - expected) < 4 * found.error < 0.05 * expected
