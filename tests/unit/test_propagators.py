"""Propagators against quadrature and their own steps: responses, variances, stationary state."""

from __future__ import annotations

import math

import pytest
import torch
from numpy.polynomial import legendre

from spdebench.equations import KPZ, renormalise
from spdebench.equations.propagators import (
    CRANK_NICOLSON,
    EXPLICIT_EULER,
    IMPLICIT_EULER,
    Exponential,
    Impulsive,
    Propagator,
    Rotation,
    Verlet,
    WickSplitting,
    phi_functions,
)
from spdebench.errors import UserError

FIRST = [IMPLICIT_EULER, CRANK_NICOLSON, EXPLICIT_EULER, WickSplitting(), Exponential(), Impulsive()]
RATES = torch.tensor([0.3, 2.0, 7.0], dtype=torch.float64)
H = 0.1
WEIGHTS = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)


def kind(propagator: Propagator) -> str:
    return f"{type(propagator).__name__} {getattr(propagator, 'theta', '')}"


@pytest.mark.parametrize("propagator", FIRST, ids=kind)
@pytest.mark.parametrize("symbol", [-RATES, 1j * RATES], ids=["dissipative", "dispersive"])
def test_an_impulse_is_a_constant_rate(propagator: Propagator, symbol: torch.Tensor) -> None:
    step = propagator.noise(symbol, H)
    torch.testing.assert_close(propagator.impulse(symbol, H), (step.left + step.right)[..., 0] / H, rtol=1e-13, atol=0)


@pytest.mark.parametrize("propagator", FIRST, ids=kind)
@pytest.mark.parametrize("steps", [1, 3])
def test_the_variance_is_the_sum_of_squared_responses(propagator: Propagator, steps: int) -> None:
    for symbol in (-RATES, -torch.tensor([0.0, 2.0, 7.0], dtype=torch.float64), 1j * RATES):
        _, noise = propagator.over(symbol, H, steps)
        responses = noise.powers((noise.left + noise.right) / H, 5)
        wanted = (WEIGHTS * responses.abs() ** 2).sum(1).cumsum(0) * H
        found = propagator.variance(symbol, WEIGHTS, H, steps, 5)
        torch.testing.assert_close(found[1:], wanted, rtol=1e-12, atol=0)
        assert found[0] == 0


@pytest.mark.parametrize("propagator", FIRST, ids=kind)
@pytest.mark.parametrize("steps", [1, 3])
def test_the_stationary_variance_is_the_limit(propagator: Propagator, steps: int) -> None:
    late = propagator.interval_variance(-RATES, WEIGHTS, H, steps, 2000)[-1]
    torch.testing.assert_close(propagator.stationary(-RATES, WEIGHTS, H, steps).sum(), late, rtol=1e-11, atol=0)


@pytest.mark.parametrize("propagator", [Exponential(), Impulsive()], ids=kind)
def test_the_interval_variance_is_the_mean_over_the_interval(propagator: Propagator) -> None:
    """X(t_n + s) by the same propagator over s < h with the noise's rate (or impulse) of the whole interval."""
    nodes, quadrature = (torch.from_numpy(x) for x in legendre.leggauss(20))
    mean = torch.zeros(3, dtype=torch.float64)
    for x, w in zip(((nodes + 1) / 2).tolist(), (quadrature / 2).tolist(), strict=True):
        s = H * x
        held = s / H if type(propagator) is Exponential else 1.0  # the part of the increment that has come in
        gain, decay = propagator.impulse(-RATES, s) * held, torch.exp(-s * RATES)
        start = torch.stack([propagator.variance(-RATES[k : k + 1], WEIGHTS[k : k + 1], H, 1, 2) for k in range(3)], 1)
        mean += w * (start * decay**2 + WEIGHTS * gain**2 * H).sum(1)
    found = propagator.interval_variance(-RATES, WEIGHTS, H, 1, 3)
    torch.testing.assert_close(found, mean, rtol=1e-11, atol=0)


@pytest.mark.parametrize("propagator", [Verlet(), Rotation()], ids=kind)
def test_second_order_in_time_has_no_scalar_variance(propagator: Propagator) -> None:
    with pytest.raises(UserError, match="first order in time only"):
        propagator.variance(-RATES, WEIGHTS, H, 1, 3)


def test_rotation_solves_a_linear_source_exactly() -> None:
    """x_tt = -w^2 x + 1 + s from rest: x = (1 + s - cos(ws) - sin(ws)/w)/w^2."""
    omega, tau = torch.tensor([1e-5, 0.5, 9.0], dtype=torch.float64), 0.7
    step = Rotation().drift(-(omega**2), tau)
    found = (step.left + (1 + tau) * step.right)[..., 0]
    exact = (1 + tau - torch.cos(omega * tau) - torch.sin(omega * tau) / omega) / omega**2
    exact[0] = tau**2 / 2 + tau**3 / 6
    torch.testing.assert_close(found, exact, rtol=1e-9, atol=0)


def test_phi_functions_are_integrals() -> None:
    """phi_k(z) = int_0^1 e^{(1-s) z} s^{k-1}/(k-1)! ds."""
    nodes, weights = (torch.from_numpy(x) for x in legendre.leggauss(40))
    s = (nodes + 1) / 2
    z = torch.tensor([0, 1e-9, 0.5, -0.999, -1.001, -20, 3j, 1 + 1j], dtype=torch.complex128)
    for k, values in enumerate(phi_functions(z), 1):
        terms = torch.exp((1 - s) * z[:, None]) * s ** (k - 1) / math.factorial(k - 1)
        torch.testing.assert_close(values, (terms @ (weights / 2).to(terms.dtype)), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("substeps", [1, 3])
def test_kpzs_exact_constant_is_that_of_the_sub_steps_in_use(substeps: int) -> None:
    """E (D X)^2 from the responses of the scheme, summed until they have died out."""
    eq = KPZ(points=16, truncation=8, steps=50, frames=50, substeps=substeps, renormalisation="exact", sigma=1.0)
    grid, h = eq.grid, eq.horizon / 50
    _, noise = IMPLICIT_EULER.over(eq.symbol(grid), h, substeps)
    responses = noise.powers((noise.left + noise.right) / h, 4000)[:, 1:5]
    power = eq.eigenvalue_roots()[1:5, 0] ** 2
    slope = grid.derivative(0, difference=True).abs()[1:5]
    wanted = float((2 * slope**2 * power * 0.5 * 2 * (responses**2).sum(0) * h).sum())
    assert renormalise.kpz_stationary_slope(eq) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(
    ("propagator", "grid", "order"),
    [
        (IMPLICIT_EULER, False, 1 / 4),
        (Exponential(), False, 1 / 4),
        (Rotation(), False, 1 / 2),
        (Verlet(), True, 1 / 3),
    ],
    ids=["implicit Euler", "exponential", "rotation", "leapfrog"],
)
def test_strong_orders_for_space_time_white_noise(propagator: Propagator, grid: bool, order: float) -> None:
    """The error of x_k at T is sum_n int (f_k - K_k,n) dW: its variance is int f^2 - 2 sum K int f + tau sum K^2.

    f = e^-ls or sin(ws)/w, l = w^2 = (2 pi k)^2, K the response of the step. Leapfrog has the three-point Laplacian of
    a grid of spacing 2 tau, and the modes beyond the grid are lost.
    """
    top, horizon, found = 6000, 0.5 if propagator.noise(-RATES, H).a.shape[-1] == 2 else 0.05, []
    omega = 2 * math.pi * torch.arange(1, top, dtype=torch.float64)
    for steps in (128, 256):
        tau, n = horizon / steps, torch.arange(steps + 1, dtype=torch.float64)[:, None]
        symbol = -((torch.sin(omega * tau) / tau) ** 2) if grid else -(omega**2)
        step = propagator.noise(symbol, tau)
        response = step.powers((step.left + step.right) / tau, steps)
        if grid:
            response[:, omega >= math.pi / (2 * tau)] = 0
        if step.a.shape[-1] == 2:
            total = (horizon / 2 - torch.sin(2 * omega * horizon) / (4 * omega)) / omega**2
            mean = -torch.diff(torch.cos(omega * tau * n), dim=0) / omega**2
        else:
            total = -torch.expm1(-2 * omega**2 * horizon) / (2 * omega**2)
            mean = -torch.diff(torch.exp(-(omega**2) * tau * n), dim=0) / omega**2
        found.append(float((total + (tau * response**2 - 2 * response * mean).sum(0)).sum()))
    assert math.log2(found[0] / found[1]) / 2 == pytest.approx(order, abs=0.015)
