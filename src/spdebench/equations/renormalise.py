"""Renormalisation constants as functions, with their formulas."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from spdebench.noise import spectra

if TYPE_CHECKING:
    from spdebench.equations.kpz import KPZ


def mollifier_sum(truncation: int) -> float:
    """sum_{k in Z} phi^2(k/J), which the normalisation of phi makes about J."""
    top = math.ceil(spectra.bump_radius() * truncation)
    phi2 = spectra.mollifier(torch.arange(1, top + 1), truncation) ** 2
    return 1.0 + 2.0 * float(phi2.sum())


def kpz_cole_hopf(eq: KPZ) -> float:
    """lambda sigma^2 (1/2) sum phi^2(k eps) over the modes in use, zero mode included: the Ito correction."""
    phi2 = eq.eigenvalue_roots()[:, 0] ** 2
    return eq.coupling * eq.sigma**2 * 0.5 * (1.0 + 2.0 * float(phi2[1:].sum()))


def kpz_stationary_slope(eq: KPZ) -> float:
    """E (D X)^2 in the stationary state of the linear scheme, X driven by sigma dW^eps; zero mode apart.

    Linearly implicit Euler:       E|X_k|^2 = q h / ((1 + l h)^2 - 1),  l, D_k of the differences (h the step)
    noise constant on intervals:   E|X_k|^2 = q/(h l^2) (1 - (1 - e^-z)/z),  z = l h, averaged over the interval
    with q = sigma^2 phi^2(k eps), l = -L(k). Both tend to q/2l as h goes to 0.
    """
    grid, h = eq.solving_grid, eq.horizon / eq.noise_steps
    noise = eq.wiener(grid)
    # E|dW_k|^2/h for every grid coefficient, folding and the Nyquist convention included
    k = torch.arange(noise.basis.pairs)
    power = torch.zeros(grid.spectral_shape[0], dtype=torch.float64)
    n = grid.points[0]
    for harmonic, root in zip(k.tolist(), noise.roots[:, 0].tolist(), strict=True):
        slot = min(harmonic % n, n - harmonic % n)
        double = slot == 0 or 2 * slot == n  # the grid sees 2 Re c
        power[slot] += root**2 * (2.0 if double and harmonic else 1.0)
    rate = -eq.symbol(grid)[1:]
    q = eq.sigma**2 * power[1:]
    if eq.edition == "paper":
        variance = q * h / ((1 + rate * h) ** 2 - 1)
    else:
        z = rate * h
        variance = q / (h * rate**2) * (1 + torch.expm1(-z) / z)
    slope = grid.derivative(0, difference=eq.differences).abs()[1:]
    return float((grid.multiplicity()[1:] * slope**2 * variance).sum())


def kpz_counterterm(eq: KPZ) -> float:
    """C of the equation's ``renormalisation`` (see `KPZ`)."""
    if eq.renormalisation == "none":
        return 0.0
    if eq.renormalisation == "paper":
        return eq.coupling * eq.sigma**2 * mollifier_sum(eq.truncation)
    return eq.coupling * (kpz_stationary_slope(eq) + 0.5 * eq.sigma**2)
