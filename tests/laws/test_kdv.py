"""Laws of kdv: mass and energy, the cnoidal wave, invariants, Galilean shift, strong order."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.special import ellipj, ellipk
from strong import assert_order, final, paths_at, slope

from spdebench.equations import KdV, equation
from spdebench.solvers import simulate, solve


@pytest.mark.parametrize("noise", ["q_wiener", "cylindrical"])
@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_mass_moves_with_the_zero_mode_only(noise, edition):
    """int u(t) = int u_0 + sigma sqrt(lambda_0) beta_0(t), path by path."""
    eq = equation("kdv", noise=noise, edition=edition, points=32, truncation=16, kappa=0.1, substeps=2)
    paths = simulate(eq, 4, range(6), out_dtype=torch.float64)
    mass = paths.u.mean(-1)
    moved = mass[:, :1] + 0.1 * paths.dw.mean(-1).cumsum(1)
    assert torch.allclose(mass, moved, atol=1e-13)


@pytest.mark.parametrize(("noise", "gain"), [("q_wiener", 0.0053690), ("cylindrical", 0.635)])
@pytest.mark.parametrize("truncation", [126, 128])
def test_mean_energy_at_T(noise, gain, truncation):
    """E int u^2 = int u_0^2 + sigma^2 Tr(Q) T at T = 0.5 on 128 points, edition paper; n = 128, 4 standard errors.

    Both J give the same energy, since the harmonic 64 of J = 128 is the Nyquist mode, which is not in u. The martingale
    2 sigma sum <u_n, dW_n>, whose mean is zero, is subtracted.
    """
    eq = equation("kdv", noise=noise, truncation=truncation)
    eigenvalues = eq.eigenvalue_roots()[:64] ** 2  # of the harmonics 0..63
    assert abs(0.1**2 * 0.5 * float(eigenvalues.sum() - eigenvalues[0, 1]) - gain) < 1e-7
    paths = simulate(eq, 2, range(128), out_dtype=torch.float64)
    martingale = 2 * 0.1 * (paths.u[:, :-1] * paths.dw[:, 1:]).mean(-1).sum(1)
    gained = paths.u[:, -1].square().mean(-1) - paths.u[:, 0].square().mean(-1) - martingale
    error = float(gained.std()) / math.sqrt(len(gained))
    assert abs(float(gained.mean()) - gain) < 4 * error
    assert error < (0.0025 if noise == "cylindrical" else 0.1) * gain


def cnoidal(x: torch.Tensor, t: float, m: float = 0.1) -> torch.Tensor:
    """f(x - ct) with f = -2 m p^2 cn^2(p x | m), p = 2K(m), c = 4 p^2 (2m - 1): period 1, u_t + u_xxx = 6 u u_x."""
    p = 2 * ellipk(m)
    c = 4 * p**2 * (2 * m - 1)
    _, cn, _, _ = ellipj((p * (x - c * t)).numpy(), m)
    return torch.as_tensor(-2 * m * p**2 * cn**2)


def test_cnoidal_wave_and_order_four():
    errors = []
    for substeps in (1, 2, 4, 8):
        eq = KdV(sigma=0.0, points=32, truncation=8, horizon=0.02, steps=20, frames=20, substeps=substeps)
        x = eq.grid.coordinates(0)
        u = solve(eq, cnoidal(x, 0.0)[None], torch.zeros(1, 21, 32, dtype=torch.float64))
        errors.append(float((u[0, -1] - cnoidal(x, 0.02)).abs().max()))
    assert errors[-1] < 1e-8
    order = math.log2(errors[0] / errors[-1]) / 3
    assert order > 3.7, errors


def test_invariants_of_the_semi_discrete_flow_to_rounding():
    """d/dt of mass, int u^2 and int (u_x^2/2 + u^3) vanish along u_t = L u + F(u) in the truncated modes."""
    eq = equation("kdv", points=64, truncation=32)
    grid = eq.grid
    c = grid.transform(torch.randn(4, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    c[:, 20:] = 0
    rate = eq.symbol(grid) * c + eq.nonlinear(grid)(c)
    fine = grid.with_points(256)
    u, u_t = (fine.inverse(grid.resize(v, fine)) for v in (c, rate))
    u_xx = fine.inverse(grid.resize(grid.laplacian() * c, fine))
    scale = u_t.abs().mean(-1)
    assert (u_t.mean(-1).abs() / scale).max() < 1e-13
    assert ((u * u_t).mean(-1).abs() / (scale * u.abs().mean(-1))).max() < 1e-12
    slope_of_h = -u_xx + 3 * u**2
    assert ((slope_of_h * u_t).mean(-1).abs() / (scale * slope_of_h.abs().mean(-1))).max() < 1e-11


def test_invariants_drift_with_the_order_of_the_stepper():
    def drift(substeps: int) -> float:
        eq = KdV(sigma=0.0, points=16, truncation=8, horizon=0.02, steps=10, frames=10, substeps=substeps)
        x = eq.grid.coordinates(0)
        u0 = (torch.sin(2 * math.pi * x) + 0.3 * torch.cos(4 * math.pi * x))[None]
        u = solve(eq, u0, torch.zeros(1, 11, 16, dtype=torch.float64))
        energy = u.square().mean(-1)
        return float((energy - energy[:, :1]).abs().max())

    coarse, fine = drift(16), drift(64)
    assert fine < 1e-9
    assert math.log2(coarse / fine) / 2 > 3.5, (coarse, fine)


def test_galilean_shift():
    """u(x,t) + c solves the equation when x moves by 6ct: adding c = 0.25 and reading at x + 6 c t = x + 0.75 T/0.5."""
    eq = KdV(sigma=0.0, points=64, truncation=8, horizon=0.5, steps=50, frames=50, substeps=4)
    x = eq.grid.coordinates(0)
    still = torch.zeros(1, 51, 64, dtype=torch.float64)
    plain = solve(eq, torch.sin(2 * math.pi * x)[None], still)[0, -1]
    moved = solve(eq, torch.sin(2 * math.pi * x)[None] + 0.25, still)[0, -1]
    assert torch.allclose(moved - 0.25, plain.roll(-48), atol=1e-10)  # 0.75 of 64 points


@pytest.mark.parametrize("edition", [pytest.param("paper", marks=pytest.mark.slow), "converged"])
def test_strong_order_one_for_fixed_truncation(edition):
    """Impulses of smooth noise: order 1 while omega_J dt is small (0.6 to 0.08 here). For rough noise the phases
    omega_J dt are never resolved and no order is known."""
    eq = KdV(edition=edition, sigma=1.0, truncation=4, points=16, solve_points=16, horizon=0.02, substeps=1)
    exact = final(paths_at(eq, 4096), range(16))
    steps = (64, 128, 256, 512)
    errors = [(final(paths_at(eq, s), range(16)) - exact).square().mean(-1) for s in steps]
    assert_order(slope(torch.stack(errors)), 1.0)


def test_another_flux_coefficient_is_a_rescaling_of_the_solution() -> None:
    """u solves u_t = -u_xxx + 3 (u^2)_x + sigma dW iff u/2 solves it with the flux 6 (u^2)_x and the noise sigma/2."""
    double = type("Double", (KdV,), {"quadratic_dispersion": lambda self: (self.dispersion, 6.0)})
    fields = {"points": 32, "truncation": 8, "steps": 10, "frames": 10, "horizon": 0.1}
    eq = KdV(**fields)
    paths = simulate(eq, 0, range(2), out_dtype=torch.float64)
    half = solve(double(**fields), paths.u0 / 2, paths.dw / 2)
    torch.testing.assert_close(half, paths.u / 2, rtol=0, atol=1e-12)
