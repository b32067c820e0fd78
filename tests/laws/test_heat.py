"""Laws of heat: the exact Gaussian law, moments of multiplicative noise in both senses, strong orders."""

from __future__ import annotations

import math

import pytest
import torch
from strong import distances_of_senses

from spdebench.equations.heat import Heat
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.solvers import simulate


@pytest.mark.parametrize("boundary", ["periodic", "dirichlet"])
def test_additive_noise_path_by_path(boundary):
    """c' = e^-z c + (1 - e^-z)/z sigma dW for every mode, z = -L h: exact in edition converged."""
    eq = Heat(edition="converged", boundary=boundary, points=32, truncation=16, sigma=0.7, kappa=0.1)
    paths, grid, h = simulate(eq, 0, range(3), out_dtype=torch.float64), eq.grid, eq.horizon / eq.frames
    z = -h * grid.laplacian()
    gain = torch.where(z > 0, -torch.expm1(-z) / torch.where(z > 0, z, 1.0), 1.0)
    c = grid.transform(paths.u0)
    for n in range(1, eq.frames + 1):
        c = torch.exp(-z) * c + gain * eq.sigma * grid.transform(paths.dw[:, n])
    assert torch.allclose(grid.inverse(c), paths.u[:, -1], atol=1e-12)


@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_the_gaussian_law_of_additive_noise(edition):
    """Mode k: mean e^{-l t} c_k(0), variance sigma^2 (1 - e^{-2 l t})/(2 l), fourth moment three times its square; each
    within 4 standard errors (3 % to 15 %) at fine steps."""
    n, eq = 2048, Heat(edition=edition, points=16, truncation=4, frames=1, steps=256)
    if edition == "converged":
        eq = eq.replace(frames=64, steps=64, solve_points=16)
    u = simulate(eq, 1, range(n), out_dtype=torch.float64, every=eq.frames).u
    c = eq.grid.transform(u)[..., :3]
    rate = (2 * math.pi * torch.arange(3)) ** 2
    mean = torch.exp(-rate * eq.horizon) * c[0, 0]
    fluctuation = c[:, -1] - mean
    assert float((fluctuation.mean(0).abs() / fluctuation.abs().square().mean(0).sqrt()).max()) < 4 / math.sqrt(n)
    for k in range(3):
        variance = eq.horizon if k == 0 else -math.expm1(-2 * rate[k] * eq.horizon) / (2 * float(rate[k]))
        part = fluctuation[:, k].real / math.sqrt(variance if k == 0 else variance / 2)
        assert float(part.square().mean()) == pytest.approx(1, abs=4 * math.sqrt(2 / n) + 0.01)
        assert float((part**4).mean()) == pytest.approx(3, abs=4 * math.sqrt(96 / n) + 0.06)


def second_moment(grid: Grid, u0: torch.Tensor, covariance: torch.Tensor, time: float, steps: int) -> torch.Tensor:
    """m(x,y) = E u(x) u(y):  m_t = m_xx + m_yy + q(x,y) m, by Strang's splitting."""
    both = Grid(grid.points * 2, grid.lower * 2, grid.upper * 2)
    half, growth = torch.exp(0.5 * time / steps * both.laplacian()), torch.exp(time / steps * covariance)
    m = u0[:, None] * u0
    for _ in range(steps):
        m = both.inverse(half * both.transform(growth * both.inverse(half * both.transform(m))))
    return m


@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_second_moment_of_multiplicative_noise(edition):
    """Ito: m(x,y) solves m_t = m_xx + m_yy + sigma^2 q(x,y) m; its averages along y - x = 0 and 1/2 within 4 standard
    errors, which are below 5 %. The noise adds half of E u^2 or more."""
    n, j, sigma = 2048, 4, 2.2
    eq = Heat(edition=edition, noise_type="multiplicative", sigma=sigma, points=16, truncation=j, frames=1, steps=256)
    if edition == "converged":
        eq = eq.replace(frames=64, steps=64, solve_points=16, substeps=1)
    grid = eq.grid
    x = grid.coordinates(0)
    lags = 2 * math.pi * (x[:, None] - x)
    covariance = sigma**2 * (1 + 2 * sum(torch.cos(k * lags) for k in range(1, j // 2 + 1)))
    m = second_moment(grid, eq.initial(grid, 0, [0])[0], covariance, eq.horizon, 400)
    u = simulate(eq, 2, range(n), out_dtype=torch.float64, every=eq.frames).u[:, -1]
    assert float(m.diagonal().mean()) > 1.5
    for shift in (0, 8):
        each, wanted = (u * u.roll(-shift, -1)).mean(-1), float(m.roll(-shift, -1).diagonal().mean())
        error = float(each.std()) / math.sqrt(n)
        assert error < 0.05 * wanted
        assert abs(float(each.mean()) - wanted) < 4 * error


@pytest.mark.parametrize("edition", ["paper", "converged"])
@pytest.mark.parametrize("calculus", ["ito", "stratonovich"])
def test_mean_of_multiplicative_noise(edition, calculus):
    """E u = e^{t L} u_0 in Ito's sense and e^{sigma^2 q t/2} times that in Stratonovich's; q is a constant here."""
    n = 1024
    common = {"noise_type": "multiplicative", "noise": "q_wiener", "calculus": calculus, "points": 16, "truncation": 8}
    eq = Heat(**common, edition=edition, sigma=3.0, frames=50, steps=200, substeps=1)
    q = eq.wiener().trace
    u = simulate(eq, 5, range(n), out_dtype=torch.float64, every=50).u[:, -1].mean(-1)
    wanted = math.exp(4.5 * q * eq.horizon) if calculus == "stratonovich" else 1.0
    error = float(u.std()) / math.sqrt(n)
    assert error < 0.03 * wanted and math.exp(4.5 * q * eq.horizon) > 1.25
    assert abs(float(u.mean()) - wanted) < 4 * error


def test_ito_with_white_noise_that_is_constant_on_intervals():
    """J = 64, 20 intervals: the correction counts what decays within an interval; E mean(u) = 1 within 4 standard
    errors of below 1 %. The correction for infinitely short intervals, (sigma^2/2) (J+1), would give e^{-0.6}."""
    n, fields = 512, {"points": 64, "truncation": 64, "frames": 20, "steps": 20, "substeps": 4}
    eq = Heat(edition="converged", noise_type="multiplicative", sigma=0.7, **fields)
    u = simulate(eq, 3, range(n), out_dtype=torch.float64, every=20).u[:, -1].mean(-1)
    error = float(u.std()) / math.sqrt(n)
    assert error < 0.01
    assert abs(float(u.mean()) - 1) < 4 * error
    correction = eq.correction(eq.grid)
    assert isinstance(correction, torch.Tensor)
    assert math.exp(eq.horizon * (-float(correction.mean()) - 0.5 * 0.49 * 65)) < 0.6


@pytest.mark.parametrize("calculus", ["ito", "stratonovich"])
def test_ito_and_stratonovich_in_both_editions_at_fixed_truncation(calculus):
    """Strong order 1/2 for Euler's method and 1 for averaged noise; both approach one solution of this sense."""
    common = {"noise_type": "multiplicative", "calculus": calculus, "truncation": 4, "points": 32, "solve_points": 32}
    right, wrong = distances_of_senses(Heat(**common, substeps=1, sigma=2.0), range(32))
    assert right < 0.1 * wrong


def test_diffusivity_must_be_positive():
    with pytest.raises(UserError, match="heat: diffusivity must be positive, got 0"):
        Heat(diffusivity=0)
