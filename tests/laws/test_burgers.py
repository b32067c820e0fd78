"""Laws of burgers: Cole-Hopf without noise, KPZ path by path, mean, energy balance, strong order."""

from __future__ import annotations

import math

import pytest
import torch
from strong import assert_order, final, paths_at, slope

from spdebench.equations import KPZ
from spdebench.equations.burgers import Burgers
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.solvers import simulate, solve


def cole_hopf(viscosity: float, x: torch.Tensor, t: float) -> torch.Tensor:
    """u = -2 nu theta_x/theta, theta_t = nu theta_xx, theta_0 = exp(cos(2 pi x)/(4 pi nu)): the solution from sin."""
    fine = Grid.unit(1024)
    theta = torch.exp((torch.cos(2 * math.pi * fine.coordinates(0)) - 1) / (4 * math.pi * viscosity))
    c = fine.transform(theta) * torch.exp(viscosity * t * fine.laplacian())
    exact = -2 * viscosity * fine.inverse(c * fine.derivative(0)) / fine.inverse(c)
    return exact[:: 1024 // len(x)]


def errors_without_noise(edition: str, points: int, **fields: int) -> float:
    eq = Burgers(edition=edition, points=points, truncation=8, **fields)
    x = eq.grid.coordinates(0)
    u = solve(eq, torch.sin(2 * math.pi * x)[None], torch.zeros(1, 51, points, dtype=torch.float64))[0]
    return max(float((u[n] - cole_hopf(0.02, x, 0.01 * n)).abs().max()) for n in range(10, 51, 10))


def test_the_shock_of_cole_hopf():
    """Modes converge faster than any power; differences have order 2 in space (order 1 in time is made small)."""
    assert errors_without_noise("converged", 128, substeps=8) < 1e-6
    errors = [errors_without_noise("paper", n, substeps=s) for n, s in ((32, 8), (64, 32), (128, 128))]
    assert math.log2(errors[0] / errors[2]) / 2 > 1.8


def test_the_slope_of_kpz_path_by_path():
    """h_t = h_xx + a (h_x)^2 + s dW/dt: u = -2 a h_x solves Burgers with viscosity 1, driven by -2 a s d_x dW."""
    common = {"edition": "converged", "truncation": 32, "points": 64, "horizon": 0.05, "substeps": 8}
    kpz = KPZ(**common, coupling=2.0, sigma=1.0, renormalisation="exact")  # C is a constant: its derivative is 0
    paths = simulate(kpz, 3, range(4), out_dtype=torch.float64)
    slope_of = kpz.grid.derivative(0)

    def derivative(field: torch.Tensor) -> torch.Tensor:
        return kpz.grid.inverse(kpz.grid.transform(field) * slope_of)

    burgers = Burgers(**common, viscosity=1.0, sigma=4.0)
    u = solve(burgers, -4 * derivative(paths.u0), -derivative(paths.dw))
    gap = u + 4 * derivative(paths.u)
    assert float(u.abs().max()) > 20
    assert float(gap.abs().max()) < 1e-9


@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_the_transport_term_conserves_mean_and_energy(edition):
    eq = Burgers(edition=edition, points=64)
    grid = eq.solving_grid
    u = torch.randn(3, grid.points[0], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    smooth = grid.inverse(grid.with_points(41).resize(grid.resize(grid.transform(u), grid.with_points(41)), grid))
    force = eq.drift(grid)(smooth) if edition == "paper" else grid.inverse(eq.nonlinear(grid)(grid.transform(smooth)))
    assert float(force.abs().max()) > 1
    for product in (force, force * smooth):
        assert float(product.mean(-1).abs().max()) < 1e-12 * float(force.abs().max())


@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_the_mean_is_a_brownian_motion(edition):
    eq = Burgers(edition=edition, points=32, truncation=16)
    paths = simulate(eq, 1, range(4), out_dtype=torch.float64)
    assert torch.allclose(paths.u.mean(-1), eq.sigma * paths.dw.mean(-1).cumsum(1), atol=1e-12)


@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_energy_balance(edition):
    """E|u(T)|^2 = |u_0|^2 + sigma^2 Tr(Q) T - 2 nu int E|u_x|^2 dt, within 4 standard errors of below 1 %.

    Smooth noise and 200 intervals; the martingale 2 sigma sum <u_n, dW_n>, of mean 0, is taken off to reduce the
    variance.
    """
    eq = Burgers(
        edition=edition, noise="q_wiener", sigma=0.4, points=32, truncation=8, frames=200, steps=200, substeps=1
    )
    grid, n = eq.grid, 128
    paths = simulate(eq, 2, range(n), out_dtype=torch.float64)
    slopes = grid.inverse(grid.transform(paths.u) * (-grid.laplacian(difference=edition == "paper")).sqrt())
    dissipation = torch.trapezoid(slopes.square().mean(-1), dx=eq.horizon / 200, dim=1)
    martingale = 2 * eq.sigma * (paths.u[:, :-1] * paths.dw[:, 1:]).mean(-1).sum(1)
    gained = (paths.u[:, -1].square() - paths.u0.square()).mean(-1)
    each = gained + 2 * eq.viscosity * dissipation - martingale
    wanted, error = eq.sigma**2 * eq.wiener().trace * eq.horizon, float(each.std()) / math.sqrt(n)
    assert error < 0.01 * wanted
    assert abs(float(each.mean()) - wanted) < 4 * error


@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_strong_order_one_for_fixed_truncation(edition):
    eq = Burgers(edition=edition, sigma=0.5, viscosity=0.05, truncation=4, points=16, solve_points=16, substeps=1)
    exact = final(paths_at(eq, 1024), range(8))
    errors = [(final(paths_at(eq, s), range(8)) - exact).square().mean(-1) for s in (32, 64, 128)]
    assert_order(slope(torch.stack(errors)), 1.0)


def test_viscosity_must_be_positive():
    with pytest.raises(UserError, match="burgers: viscosity must be positive, got 0"):
        Burgers(viscosity=0)
