"""Laws of ks: linear growth, energy budget, mean, chaos, strong order."""

from __future__ import annotations

import math

import pytest
import torch
from strong import assert_order, final, paths_at, slope

from spdebench.equations.initial import eta
from spdebench.equations.ks import KuramotoSivashinsky
from spdebench.grids import Grid
from spdebench.solvers import simulate, solve


@pytest.mark.parametrize(("edition", "tolerance"), [("paper", 1e-5), ("converged", 1e-7)])
def test_small_waves_grow_or_decay_at_their_rate(edition, tolerance):
    """c_k(t) = e^{(kappa^2 - kappa^4) t} c_k(0): growth for the harmonics up to 5, decay beyond."""
    eq = KuramotoSivashinsky(edition=edition, points=32, truncation=8, horizon=10.0, frames=20, steps=20)
    kappa = 2 * math.pi / 32 * torch.arange(1, 8, dtype=torch.float64)
    u0 = 1e-9 * torch.cos(kappa[:, None] * eq.grid.coordinates(0))
    c = eq.grid.transform(solve(eq, u0, torch.zeros(7, 21, 32, dtype=torch.float64))[:, -1])
    rate = kappa**2 - kappa**4
    assert (rate > 0).tolist() == [True] * 5 + [False] * 2
    growth = 2e9 * c.diagonal(offset=1).real
    assert torch.allclose(growth, torch.exp(10 * rate), rtol=tolerance, atol=1e-9)


@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_energy_budget(edition):
    """E|u(t)|^2 - |u_0|^2 = sigma^2 Tr(Q) t + 2 int E(|u_x|^2 - |u_xx|^2) dt, within 4 standard errors of below 1 %.

    Smooth noise and 400 intervals; the martingale 2 sigma sum <u_n, dW_n>, of mean 0, is taken off to reduce the
    variance.
    """
    n, fields = 48, {"noise": "q_wiener", "truncation": 8, "points": 32, "frames": 400, "steps": 400}
    eq = KuramotoSivashinsky(edition=edition, **fields, solve_points=32, substeps=1, horizon=20.0, sigma=1.0)
    grid, length = eq.grid, 32.0
    paths = simulate(eq, 2, range(n), out_dtype=torch.float64)
    square = -grid.laplacian()
    power = grid.multiplicity() * grid.transform(paths.u).abs().square()
    rate = 2 * length * (power * (square - square**2)).sum(-1)
    martingale = 2 * eq.sigma * length * (paths.u[:, :-1] * paths.dw[:, 1:]).mean(-1).sum(1)
    gained = length * (paths.u[:, -1].square() - paths.u0.square()).mean(-1)
    each = gained - torch.trapezoid(rate, dx=eq.horizon / 400, dim=1) - martingale
    wanted, error = eq.wiener().trace * eq.horizon, float(each.std()) / math.sqrt(n)
    assert float(torch.trapezoid(rate.abs(), dx=eq.horizon / 400, dim=1).mean()) > 2 * wanted  # not a trivial balance
    assert error < 0.02 * wanted
    assert abs(float(each.mean()) - wanted) < 4 * error + 0.01 * wanted


def test_the_transport_term_conserves_energy_and_the_mean_is_a_brownian_motion():
    eq = KuramotoSivashinsky(points=32, truncation=8)
    paths = simulate(eq, 1, range(4), out_dtype=torch.float64)
    u = paths.u[:, -1]
    force = eq.drift(eq.grid)(u)
    assert torch.allclose((force * u).mean(-1), 0.25 * u.square().mean(-1), rtol=1e-11)
    assert torch.allclose(paths.u.mean(-1) - paths.u0.mean(-1)[:, None], eq.sigma * paths.dw.mean(-1).cumsum(1))


def test_it_is_chaotic_and_stays_bounded():
    """A difference of 1e-6 grows more than twentyfold up to t = 50 under the same noise; the size of u does not."""
    eq = KuramotoSivashinsky(points=64)
    paths = simulate(eq, 0, range(4), out_dtype=torch.float64)
    other = solve(eq, paths.u0 + 1e-6 * torch.sin(6 * math.pi / 32 * eq.grid.coordinates(0)), paths.dw)
    gap = (other - solve(eq, paths.u0, paths.dw)).square().mean(-1).sqrt().mean(0)
    assert float(gap[-1] / gap[0]) > 20
    size = paths.u[:, 50:].square().mean().sqrt()
    assert 1 < float(size) < 1.7


def test_strong_order_one_for_fixed_truncation():
    eq = KuramotoSivashinsky(edition="converged", truncation=4, points=16, solve_points=16, substeps=1, horizon=4.0)
    exact = final(paths_at(eq, 1024), range(8))
    errors = [(final(paths_at(eq, s), range(8)) - exact).square().mean(-1) for s in (16, 32, 64)]
    assert_order(slope(torch.stack(errors)), 1.0)


def test_random_initial_data_have_the_length_of_the_box():
    """eta on [0, 32] at 32 x is eta on [0, 1] at x: harmonics 1 to 10 of the box."""
    long, unit = (eta(Grid((64,), (0.0,), (length,)), 3, range(2)) for length in (32.0, 1.0))
    assert torch.allclose(long, unit)
    assert float(Grid.unit(64).transform(long)[:, 11:].abs().max()) < 1e-8
