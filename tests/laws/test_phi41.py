"""Laws of phi41: linear variances, exact solutions, stationary moments, strong orders, the reference's statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from strong import assert_order, paths_at, strong_order

from spdebench.equations import Phi41, equation
from spdebench.noise.stream import normal_pairs, sample_states
from spdebench.solvers import make_scheme, simulate, solve


@dataclass(frozen=True, kw_only=True)
class Heat(Phi41):
    """The linear part alone from u_0 = 0."""

    def drift(self, grid, device="cpu"):
        return torch.zeros_like

    def nonlinear(self, grid, device="cpu"):
        return torch.zeros_like

    def initial(self, grid, seed, samples, device="cpu"):
        return torch.zeros(len(samples), grid.points[0], dtype=torch.float64, device=device)


def linear_variance(eq: Phi41) -> float:
    """mean_x Var u(T,x) of the scheme, exactly: each mode is struck once and its decay is watched."""
    scheme, grid = make_scheme(eq, eq.horizon / eq.noise_steps), eq.solving_grid
    wiener = eq.wiener()
    pairs = wiener.basis.pairs
    strokes = torch.cat((torch.eye(pairs), 1j * torch.eye(pairs)[1:])).to(torch.complex128)
    show = wiener.physical if scheme.noise_form == "physical" else wiener.spectral
    blow = show(strokes * math.sqrt(eq.horizon / eq.noise_steps))
    state, silent, total = scheme.start(torch.zeros(len(blow), grid.points[0], dtype=torch.float64)), blow * 0, 0.0
    for n in range(eq.noise_steps):
        state = scheme.step(state, blow if n == 0 else silent)
        total += float(scheme.field(state).square().mean(-1).sum())
    return total


@pytest.mark.parametrize(
    ("changes", "value", "tolerance"),
    [
        ({"edition": "paper"}, 0.085890, 6e-7),
        ({"edition": "converged", "substeps": 1}, 0.088353, 6e-7),
        ({"edition": "converged", "substeps": 3}, 0.088353, 6e-7),
        ({"edition": "converged", "substeps": 1, "steps": 6400, "frames": 6400, "solve_points": 130}, 0.090785, 2e-5),
    ],
)
def test_linear_variance_at_T(changes, value, tolerance):
    """J=128, sigma=1: backward Euler on differences, noise constant on intervals, and the continuum value (fine steps:
    the bias dt^2/12 sum lambda_k is 1.6e-5 there)."""
    assert abs(linear_variance(Heat(sigma=1.0, **changes)) - value) < tolerance


@pytest.mark.parametrize(("edition", "value"), [("paper", 0.085890), ("converged", 0.088353)])
def test_linear_variance_by_monte_carlo(edition, value):
    n = 4096
    u = simulate(Heat(sigma=1.0, edition=edition, substeps=1), 3, range(n), out_dtype=torch.float64, every=50).u[:, -1]
    each = u.square().mean(-1)
    assert abs(float(each.mean()) - value) < 4 * float(each.std()) / math.sqrt(n)


def test_dirichlet_linear_variance_at_T():
    """sum_k (1 - e^{-2 l t})/(2 l) 2 sin^2, averaged: sum_{k<=127} (1 - e^{-2 pi^2 k^2 T})/(2 pi^2 k^2), noise constant
    on intervals in place of e."""
    eq = Heat(sigma=1.0, boundary="dirichlet", edition="converged", substeps=1, truncation=127)
    lam = (math.pi * torch.arange(1, 128, dtype=torch.float64)) ** 2
    z = lam * 1e-3
    gain = (1 - torch.exp(-z)) / z
    want = float((gain**2 * 1e-3 * (1 - torch.exp(-100 * lam * 1e-3)) / (1 - torch.exp(-2 * z))).sum()) * 1.0
    n = 2048
    u = simulate(eq, 5, range(n), out_dtype=torch.float64, every=50).u[:, -1]
    each = u.square().mean(-1)
    assert abs(float(each.mean()) - want) < 4 * float(each.std()) / math.sqrt(n)


@pytest.mark.parametrize(("mass", "start"), [(0.0, 1.5), (3.0, 0.4)])
def test_homogeneous_solution(mass, start):
    """sigma=0, constant u_0: u_0/sqrt(1 + 2u_0^2 t), and with mass 3 u^2 = 3/(1 + (3/u_0^2 - 1)e^{-6t})."""
    eq = equation("phi41", sigma=0, mass=mass, edition="converged", points=16, truncation=8)
    u0, dw = torch.full((1, 16), start, dtype=torch.float64), torch.zeros(1, 51, 16, dtype=torch.float64)
    t = eq.times
    exact = start / torch.sqrt(1 + 2 * start**2 * t)
    if mass:
        exact = torch.sqrt(3 / (1 + (3 / start**2 - 1) * torch.exp(-6 * t)))
    assert (solve(eq, u0, dw)[0, :, 5] - exact).abs().max() < 1e-12
    coarse = solve(equation("phi41", sigma=0, mass=mass, points=16, truncation=8), u0, dw)[0, :, 5]
    fine_eq = equation("phi41", sigma=0, mass=mass, points=16, truncation=8, steps=100)
    fine = solve(fine_eq, u0, dw)[0, :, 5]
    ratio = float((coarse - exact).abs().max() / (fine - exact).abs().max())
    assert 1.9 < ratio < 2.1  # linearly implicit Euler is of order 1


@dataclass(frozen=True, kw_only=True)
class Warm(Phi41):
    """Starts from a random constant, so that the stationary law is near."""

    def initial(self, grid, seed, samples, device="cpu"):
        z = normal_pairs(
            sample_states(seed, "initial", samples, device), torch.zeros(1, dtype=int), torch.zeros(1, dtype=int)
        )
        return 0.65 * z[:, 0].real.expand(-1, grid.points[0]).clone()


def test_stationary_moments():
    """E u^2 = 0.48768 and E u^4 = 0.55814 (sigma=1, continuum; transfer operator), within 4 standard errors.

    dt = 2e-3 and |k| <= 16 lower E u^2 by about 0.003; the standard error is about 0.012.
    """
    n, chunk = 750, 250
    eq = Warm(
        sigma=1.0,
        edition="converged",
        points=32,
        solve_points=34,
        truncation=32,
        horizon=1.5,
        steps=750,
        frames=750,
        substeps=1,
    )
    rows = [range(i, i + chunk) for i in range(0, n, chunk)]
    u = torch.cat([simulate(eq, 11, r, out_dtype=torch.float64, every=250).u[:, 2:] for r in rows])
    for power, exact in ((2, 0.48768), (4, 0.55814)):
        each = (u**power).mean((-1, -2))
        error = float(each.std()) / math.sqrt(n)
        assert abs(float(each.mean()) - exact) < 4 * error
        assert error < 0.05 * exact


@pytest.mark.parametrize(
    ("edition", "steps", "fine", "truncation", "order"),
    [
        ("paper", (8, 16, 32, 64), 4096, 64, 0.25),
        ("converged", (8, 16, 32, 64), 4096, 64, 0.25),
        ("paper", (128, 256, 512, 1024), 8192, 4, 1.0),
        ("converged", (32, 64, 128, 256), 2048, 4, 1.0),
    ],
)
def test_strong_order_in_time(edition, steps, fine, truncation, order):
    """Additive noise: 1/4 where dt lambda_J >> 1 (rough: 31 to 250 here), 1 for fixed J with dt lambda_J << 1.

    The reference is the same spatial discretisation with ``fine`` steps (dt lambda_J = 0.5 in the rough case).
    """
    points = 128 if truncation > 4 else 16
    eq = Phi41(sigma=1.0, edition=edition, truncation=truncation, points=points, substeps=1, solve_points=points)
    assert_order(strong_order(eq, steps, paths_at(eq, fine), range(16)), order)


@pytest.mark.parametrize(("truncation", "std", "energy"), [(32, 0.3106, 0.1277), (128, 0.3119, 0.1272)])
def test_statistics_of_the_authors_data_where_their_scheme_is_correct(truncation, std, energy):
    """mass=3, periodic, sigma=1, n=300 there and 1200 here: std and energy at T within 4 combined standard errors."""
    n = 1200
    u = simulate(equation("phi41", mass=3, sigma=1, truncation=truncation), 42, range(n), every=50).u[:, -1].double()
    variance = u.var(0)
    influence = ((u - u.mean(0)) ** 2 / (2 * variance.sqrt()) - variance.sqrt() / 2).mean(-1)
    for ours, each, theirs in (
        (variance.sqrt().mean(), influence, std),
        (u.square().mean(), u.square().mean(-1), energy),
    ):
        combined = float(each.std()) * math.sqrt(1 / n + 1 / 300)
        assert abs(float(ours) - theirs) < 4 * combined


def test_odd_symmetry():
    """u -> -u, dW -> -dW is a symmetry of the equation, in both editions."""
    for edition in ("paper", "converged"):
        eq = equation("phi41", edition=edition, points=32, truncation=16, sigma=1, substeps=1)
        paths = simulate(eq, 0, range(3), out_dtype=torch.float64)
        there, back = solve(eq, paths.u0, paths.dw), solve(eq, -paths.u0, -paths.dw)
        assert torch.allclose(there, -back, atol=1e-14)
