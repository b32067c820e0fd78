"""Laws of wave: d'Alembert, a homogeneous solution, the second moment of the linear equation, the boundary, orders."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from scipy.integrate import solve_ivp
from strong import assert_order, final, paths_at, slope

from spdebench.equations import Wave, equation
from spdebench.solvers import simulate, solve


@dataclass(frozen=True, kw_only=True)
class Plucked(Wave):
    """Starts with the velocity cos(2 pi x) (periodic) or sin(3 pi x) (Dirichlet)."""

    def velocity(self, grid, device="cpu"):
        x = grid.coordinates(0, device)
        return torch.cos(2 * math.pi * x) if grid.periodic else torch.sin(3 * math.pi * x)


@dataclass(frozen=True, kw_only=True)
class Resting(Wave):
    """u_0 = 1, u_t = 0."""

    def velocity(self, grid, device="cpu"):
        return torch.zeros(grid.points[0], dtype=torch.float64, device=device)

    def initial(self, grid, seed, samples, device="cpu"):
        return torch.ones(len(samples), grid.points[0], dtype=torch.float64, device=device)


def dalembert(boundary: str, x: torch.Tensor, t: float) -> torch.Tensor:
    """(u_0(x+t) + u_0(x-t))/2 + (1/2) int_{x-t}^{x+t} v_0, u_0 = sin(2 pi x)."""
    moved = (torch.sin(2 * math.pi * (x + t)) + torch.sin(2 * math.pi * (x - t))) / 2
    if boundary == "periodic":
        return moved + (torch.sin(2 * math.pi * (x + t)) - torch.sin(2 * math.pi * (x - t))) / (4 * math.pi)
    return moved - (torch.cos(3 * math.pi * (x + t)) - torch.cos(3 * math.pi * (x - t))) / (6 * math.pi)


@pytest.mark.parametrize("boundary", ["periodic", "dirichlet"])
def test_dalembert(boundary):
    """The rotation of modes is exact; leapfrog on differences is of order 2."""

    def error(edition: str, points: int, steps: int) -> float:
        eq = Plucked(
            edition=edition,
            boundary=boundary,
            forcing=0.0,
            sigma=0.0,
            points=points,
            truncation=8,
            steps=steps,
            frames=10,
        )
        x = eq.grid.coordinates(0)
        u = solve(eq, torch.sin(2 * math.pi * x)[None], torch.zeros(1, 11, points, dtype=torch.float64))
        return max(float((u[0, k] - dalembert(boundary, x, 0.05 * k)).abs().max()) for k in range(11))

    assert error("converged", 32, 50) < 1e-13
    errors = [error("paper", n, 2 * n) for n in (20, 40, 80)]
    assert math.log2(errors[0] / errors[2]) / 2 > 1.9


@pytest.mark.parametrize(("edition", "tolerance"), [("paper", 2e-6), ("converged", 1e-9)])
def test_homogeneous_solution(edition, tolerance):
    """u'' = cos(pi u) + u^2, u(0) = 1, u'(0) = 0."""
    eq = Resting(edition=edition, sigma=0.0, points=16, truncation=8)
    u = solve(eq, torch.ones(1, 16, dtype=torch.float64), torch.zeros(1, 101, 16, dtype=torch.float64))[0, :, 3]
    exact = solve_ivp(
        lambda t, y: [y[1], math.cos(math.pi * y[0]) + y[0] ** 2],
        (0, 0.5),
        [1.0, 0.0],
        rtol=1e-12,
        atol=1e-13,
        t_eval=eq.times.numpy(),
    ).y[0]
    assert float((u - torch.as_tensor(exact)).abs().max()) < tolerance


@pytest.mark.parametrize("edition", ["paper", pytest.param("converged", marks=pytest.mark.slow)])
def test_second_moment_of_the_linear_multiplicative_equation(edition):
    """u_tt = u_xx + u xi from u_0 = 1: E u^2(t) = cosh(t/sqrt 2) for t <= 1/2 as J grows (1.06315 at 1/2)."""
    n = 1024
    eq = Resting(edition=edition, forcing=0.0, substeps=1 if edition == "converged" else 0)
    parts = [simulate(eq, 6, range(i, i + 128), out_dtype=torch.float64, every=50).u for i in range(0, n, 128)]
    u = torch.cat(parts)
    for frame, t in ((1, 0.25), (2, 0.5)):
        each = u[:, frame].square().mean(-1)
        error = float(each.std()) / math.sqrt(n)
        assert abs(float(each.mean()) - math.cosh(t / math.sqrt(2))) < 4 * error
        assert error < 0.015


@pytest.mark.parametrize("edition", ["paper", "converged"])
@pytest.mark.parametrize("name", ["wave", "phi41"])
def test_the_boundary_is_held_exactly(name, edition):
    eq = equation(name, boundary="dirichlet", edition=edition, kappa=0.1, sigma=1.0, points=32, truncation=16)
    paths = simulate(eq, 0, range(4))
    assert torch.all(paths.u[..., 0] == 0)
    assert torch.all(paths.dw[..., 0] == 0)
    inner = paths.u[:, -1, 1].abs().max()
    assert 0 < float(inner) < 1


@pytest.mark.parametrize(("edition", "steps"), [("paper", (64, 128, 256, 512)), ("converged", (16, 32, 64, 128))])
def test_strong_order_one_for_fixed_truncation(edition, steps):
    """Multiplicative noise of fixed truncation: order 1, since u has no martingale part."""
    eq = Wave(edition=edition, truncation=4, points=16, solve_points=16, substeps=1)
    exact = final(paths_at(eq, 8 * steps[-1]), range(24))
    errors = [(final(paths_at(eq, s), range(24)) - exact).square().mean(-1) for s in steps]
    assert_order(slope(torch.stack(errors)), 1.0)


def test_strong_order_half_for_rough_noise():
    """Multiplicative space-time white noise, exact rotation of modes: order 1/2 where omega_J dt >> 1 (12 to 100)."""
    eq = Wave(edition="converged", truncation=256, points=512, solve_points=512, substeps=1)
    exact = final(paths_at(eq, 1024), range(16))
    steps = (4, 8, 16, 32)
    errors = [(final(paths_at(eq, s), range(16)) - exact).square().mean(-1) for s in steps]
    assert_order(slope(torch.stack(errors)), 0.5)
