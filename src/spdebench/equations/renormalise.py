"""Renormalisation constants as functions, with their formulas.

X is the linear solution, X_t = L X + sigma xi, X(0) = 0, driven by the modes of the noise. E X^2 grows without bound
with the truncation, like sigma^2/(4 pi) ln J in two dimensions and like J in three. Renormalisation subtracts it, and
in three dimensions also a second constant that grows more slowly.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.polynomial import chebyshev, legendre
from torch import Tensor

from spdebench.equations.propagators import Propagator
from spdebench.equations.scheme import propagator_of
from spdebench.noise import spectra

if TYPE_CHECKING:
    from spdebench.equations.base import Equation
    from spdebench.equations.kpz import KPZ
    from spdebench.equations.phi42 import Phi42
    from spdebench.equations.phi43 import Phi43


# --- variance of the linear solution ------------------------------------------------------------------------------
def relaxed(rates: Tensor, weights: Tensor, times: Tensor) -> Tensor:
    """sum_k w_k (1 - e^{-2 l_k t})/(2 l_k) for each t, the rates l_k >= 0; a rate l_k = 0 contributes w_k t."""
    damped = rates > 0
    twice = 2 * rates[damped]
    return weights[~damped].sum() * times - torch.expm1(-times[:, None] * twice) @ (weights[damped] / twice)


def mode_rates(eq: Equation) -> tuple[Tensor, Tensor]:
    """(rates, weights): l_k = -L(k mod N) for the modes |k_i| <= J/2 of the noise on the solving grid, and w_k.

    There is one entry for each k with k_i >= 0; w_k is the number of vectors (+-k_1, +-k_2, ..) divided by the volume.
    A mode beyond the grid aliases onto k mod N with all its variance. At the Nyquist mode the grid loses the sine and
    the variance of the cosine is doubled, so that E X^2 = sigma^2 sum_k w_k g(l_k) is exact there as well.
    """
    grid, top = eq.solving_grid, eq.truncation // 2
    rates, weights = -eq.symbol(grid), torch.tensor(1 / grid.volume, dtype=torch.float64)
    signs = torch.tensor([1.0] + [2.0] * top, dtype=torch.float64)
    for axis, n in enumerate(grid.points):
        slot = torch.arange(top + 1) % n
        rates = rates.index_select(axis, torch.minimum(slot, n - slot))
        weights = weights[..., None] * signs
    return rates.flatten(), weights.flatten()


def _intervals(eq: Equation) -> tuple[Propagator, tuple[Tensor, Tensor, float, int, int]]:
    """The propagator of the equation's scheme, and the arguments of its methods `variance` and `interval_variance`."""
    rates, weights = mode_rates(eq)
    arguments = -rates, weights, eq.horizon / eq.noise_steps, eq.substeps, eq.noise_steps
    return _propagator(eq), arguments


def _propagator(eq: Equation) -> Propagator:
    return propagator_of(eq, "renormalisation", "renormalisation=none")


def scheme_variance(eq: Equation) -> Tensor:
    """E X_n^2 at the ends n = 0..noise_steps of the noise intervals, for the modes, grid and scheme of the equation."""
    propagator, arguments = _intervals(eq)
    return eq.sigma**2 * propagator.variance(*arguments)


def interval_variance(eq: Equation) -> Tensor:
    """E X^2 for each noise interval: at its start if the scheme evaluates the drift there, else its mean over it."""
    propagator, arguments = _intervals(eq)
    return eq.sigma**2 * propagator.interval_variance(*arguments)


def interval_times(eq: Equation) -> Tensor:
    """The time at which a constant is evaluated for each noise interval: its start, or its middle if it is resolved."""
    shift = 0.5 if _propagator(eq).resolves_interval else 0.0
    return (torch.arange(eq.noise_steps, dtype=torch.float64) + shift) * (eq.horizon / eq.noise_steps)


# --- phi42 --------------------------------------------------------------------------------------------------------
def box_variance(eq: Phi42, times: Tensor) -> Tensor:
    """sigma^2 sum_{|k_i| <= J/2} (1 - e^{-2 l t})/(2 l), l = 4 pi^2 |k|^2, zero mode t: E X^2 of the noise's modes.

    Continuous in space and time, on the unit square; for large J it grows by sigma^2/(4 pi) ln 2 with each doubling.
    """
    k = torch.arange(-(eq.truncation // 2), eq.truncation // 2 + 1)
    return eq.sigma**2 * _sum_by_shell((k[:, None] ** 2 + k**2).flatten(), times)


def ball_variance(eq: Phi42, times: Tensor) -> Tensor:
    """a(t) = sigma^2 (t + sum_{0 < |k| <= J} (1 - e^{-2 l t})/(2 l)), l = 4 pi^2 |k|^2: the paper's Algorithm 1.

    Its ball of radius J holds about pi times the modes of the noise, |k_i| <= J/2, and more than the grid resolves.
    """
    k = torch.arange(-eq.truncation, eq.truncation + 1)
    squares = (k[:, None] ** 2 + k**2).flatten()
    return eq.sigma**2 * _sum_by_shell(squares[squares <= eq.truncation**2], times)


def _sum_by_shell(squares: Tensor, times: Tensor) -> Tensor:
    """sum_k (1 - e^{-2 l t})/(2 l), l = 4 pi^2 |k|^2, for each t; ``squares`` has |k|^2 of every mode."""
    shells, counts = torch.unique(squares, return_counts=True)
    return relaxed(4 * math.pi**2 * shells.to(torch.float64), counts.to(torch.float64), times)


def phi42_counterterm_rates(eq: Phi42) -> list[float]:
    """m_n = 3 a_n, where a(t) is chosen by the equation's ``renormalisation`` (see `Phi42`)."""
    if eq.renormalisation == "none":
        return []
    a = ball_variance(eq, interval_times(eq)) if eq.renormalisation == "paper" else interval_variance(eq)
    return (3 * a).tolist()


# --- phi43 --------------------------------------------------------------------------------------------------------
def lattice_c0(eq: Phi43, times: Tensor) -> Tensor:
    """C_0(t) = 2^-3 sum_{0 < |k|_inf <= N} (1 - e^{-2 l_k t})/(2 l_k), l_k = 4/eps^2 sum_j sin^2(pi eps k_j/2).

    E X^2 of the lattice without its zero mode, for sigma = 1 (paper, appendix on Phi^4_3; N = J/2, eps = 2/M).
    """
    rates, weights = mode_rates(eq)
    return relaxed(rates[rates > 0], weights[rates > 0], times)


def lattice_c1(eq: Phi43, times: Tensor) -> Tensor:
    """C_1(t) = 2^-5 int_0^t sum_{k1,k2} V_s(k1) V_s(k2) P_s(k1 + k2 mod M) ds, for sigma = 1.

    V_s(k) = (e^{-s l} - e^{-(2t - s) l})/(2 l) for 0 < |k|_inf <= N, P_s(k) = e^{-s l}: E of I(:X^2:) times :X^2:, the
    sums over all k1, k2, so that the paper's C_11 and its 26 aliasing terms are in it. Interpolated from
    `c1_coefficients`, whose error is far below 1e-6 of C_1(T).
    """
    coefficients = c1_coefficients(eq.points, eq.truncation // 2, eq.upper - eq.lower, eq.horizon)
    s = np.sqrt(np.clip(times.numpy() / eq.horizon, 0, 1))
    return torch.from_numpy(chebyshev.chebval(2 * s - 1, coefficients))


@functools.cache
def c1_coefficients(points: int, top: int, length: float, horizon: float, degree: int = 40) -> tuple[float, ...]:
    """Chebyshev coefficients of C_1(T s^2) in s on [0,1]: C_1 is entire in t and like t^3 at 0."""
    nodes = chebyshev.chebpts1(degree + 1)
    values = [c1_at(points, top, length, horizon * ((x + 1) / 2) ** 2) for x in nodes]
    return tuple(chebyshev.chebfit(nodes, values, degree).tolist())


def c1_at(points: int, top: int, length: float, t: float, nodes: int = 48) -> float:
    """C_1(t) of a lattice of ``points``^3 with the noise modes |k|_inf <= ``top``.

    The double sum equals a mean over the lattice, mean_x V(x)^2 P(x), with V(x) = sum_k V(k) e^{i pi k x} and P(x)
    likewise; the factor 2^-5 is 2/length^6. The integral over s uses Gauss-Legendre nodes in r, s = t r^3, which
    spreads the nodes over the time scales 1/l of all modes.
    """
    x, weights = (torch.from_numpy(a) for a in legendre.leggauss(nodes))
    r = (x + 1) / 2
    s, w = t * r**3, weights / 2 * t * 3 * r**2
    k = torch.arange(points)
    k = torch.minimum(k, points - k)
    line = (2 * points / length * torch.sin(math.pi / points * k.to(torch.float64))) ** 2
    last = points // 2 + 1
    rates = line[:, None, None] + line[:, None] + line[:last]
    kept = torch.maximum(torch.maximum(k[:, None, None], k[:, None]), k[:last]) <= top
    kept[0, 0, 0] = False
    half = torch.where(kept, 0.5 / torch.where(rates > 0, rates, 1.0), 0.0)
    decay = torch.exp(-s[:, None, None, None] * rates)
    v = (decay - torch.exp(-(2 * t - s)[:, None, None, None] * rates)) * half
    v, p = (torch.fft.irfftn(f.to(torch.complex128), s=(points,) * 3, norm="forward") for f in (v, decay))
    return float(w @ (v.square_().mul_(p)).mean((1, 2, 3))) * 2 / length**6


def phi43_counterterm_rates(eq: Phi43) -> list[float]:
    """m_n = 3 sigma^2 C_0 - 9 sigma^4 C_1, or 3 E X_n^2 - 9 sigma^4 C_1, by ``renormalisation`` (see `Phi43`)."""
    if eq.renormalisation == "none":
        return []
    times = interval_times(eq)
    variance = eq.sigma**2 * lattice_c0(eq, times) if eq.renormalisation == "paper" else interval_variance(eq)
    return (3 * variance - 9 * eq.sigma**4 * lattice_c1(eq, times)).tolist()


# --- kpz ----------------------------------------------------------------------------------------------------------
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
    """E (D X)^2 in the stationary state of the linear scheme, X driven by sigma dW^eps, without the zero mode.

    E|X_k|^2 is that of the scheme's propagator for noise of the power q = sigma^2 phi^2(k eps); it tends to q/2l,
    l = -L(k), as the step goes to 0. D is the derivative (or the difference) that the equation's drift takes.
    """
    grid, h = eq.solving_grid, eq.horizon / eq.noise_steps
    noise = eq.wiener(grid)
    # E|dW_k|^2/h for every grid coefficient, aliasing and the Nyquist convention included
    k = torch.arange(noise.basis.pairs)
    power = torch.zeros(grid.spectral_shape[0], dtype=torch.float64)
    n = grid.points[0]
    for harmonic, root in zip(k.tolist(), noise.roots[:, 0].tolist(), strict=True):
        slot = min(harmonic % n, n - harmonic % n)
        double = slot == 0 or 2 * slot == n  # the grid's coefficient is 2 Re c
        power[slot] += root**2 * (2.0 if double and harmonic else 1.0)
    variance = _propagator(eq).stationary(eq.symbol(grid)[1:], eq.sigma**2 * power[1:], h, eq.substeps)
    slope = grid.derivative(0, difference=eq.differences).abs()[1:]
    return float((grid.multiplicity()[1:] * slope**2 * variance).sum())


def kpz_counterterm(eq: KPZ) -> float:
    """C of the equation's ``renormalisation`` (see `KPZ`)."""
    if eq.renormalisation == "none":
        return 0.0
    if eq.renormalisation == "paper":
        return eq.coupling * eq.sigma**2 * mollifier_sum(eq.truncation)
    return eq.coupling * (kpz_stationary_slope(eq) + 0.5 * eq.sigma**2)


# --- values to print ----------------------------------------------------------------------------------------------
def constants(eq: Equation) -> dict[str, float]:
    """The renormalisation constants of phi42, phi43 or kpz at time T, by name; empty for other equations."""
    by_equation: dict[str, Callable[[Any], dict[str, float]]] = {
        "phi42": _phi42_constants,
        "phi43": _phi43_constants,
        "kpz": _kpz_constants,
    }
    return by_equation[eq.name](eq) if eq.name in by_equation else {}


def _phi42_constants(eq: Phi42) -> dict[str, float]:
    """The constants a at the horizon by rule, and the ratio of the paper's to the exact one."""
    end = torch.tensor([eq.horizon], dtype=torch.float64)
    ball, box, exact = float(ball_variance(eq, end)), float(box_variance(eq, end)), float(scheme_variance(eq)[-1])
    return {"a paper": ball, "a continuum": box, "a exact": exact, "a paper / a exact": ball / exact if exact else 0.0}


def _phi43_constants(eq: Phi43) -> dict[str, float]:
    """C0, C1 and E X^2 at the horizon, and the counter-term C = 3 variance - 9 sigma^4 C1 by rule."""
    end = torch.tensor([eq.horizon], dtype=torch.float64)
    c0, c1, exact = float(lattice_c0(eq, end)), float(lattice_c1(eq, end)), float(scheme_variance(eq)[-1])
    values = {"C0": c0, "C1": c1, "E X^2": exact, "sigma^2 C0 / E X^2": eq.sigma**2 * c0 / exact if exact else 0.0}
    variances = {"C paper": eq.sigma**2 * c0, "C exact": exact}
    return values | {name: 3 * variance - 9 * eq.sigma**4 * c1 for name, variance in variances.items()}


def _kpz_constants(eq: KPZ) -> dict[str, float]:
    paper, exact = (kpz_counterterm(dataclasses.replace(eq, renormalisation=kind)) for kind in ("paper", "exact"))
    return {"C paper": paper, "C Cole-Hopf": kpz_cole_hopf(eq), "C exact": exact}
