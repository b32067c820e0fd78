"""Confidence intervals over test samples, by the BCa bootstrap (B. Efron, "Better bootstrap confidence
intervals", 1987).

    ends at the quantiles Phi(z0 + (z0 + z) / (1 - a (z0 + z))) of the resampled values, z = Phi^-1(tail),
    z0 = Phi^-1(fraction of resampled values below the estimate),   a = sum d^3 / (6 (sum d^2)^{3/2}),  d = jackknife

A statistic is a function of sample weights: ``statistic(W)`` maps weights ``(R, N)`` to ``R`` values. A bootstrap
resample is a vector of multinomial counts; the jackknife gives one sample the weight 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from spdebench.errors import UserError

Statistic = Callable[[np.ndarray], np.ndarray]

MAX_BIAS = 1.0  # if |z0| is larger, BCa would depend on the far tail of the resamples; the basic interval is used


@dataclass(frozen=True)
class Interval:
    """``[low, high]`` with confidence ``level``, by ``bca``, ``bca-linear`` (BCa of pseudo-values) or ``basic``.

    ``basic`` is 2 estimate - quantiles and is used where resampling shows a strong bias, as for the norm of a mean. It
    is bias-corrected but the estimate is not, so the estimate can lie above its own interval.
    """

    low: float
    high: float
    level: float
    method: str


@lru_cache(maxsize=4)
def resample_counts(n: int, resamples: int, seed: int) -> np.ndarray:
    """How often each of n samples is drawn, ``(resamples, n)``; all metrics use the same draws and are paired."""
    if resamples < 100:
        raise UserError(f"resamples must be 0 (no intervals) or at least 100, got {resamples}")
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples).astype(np.float64)
    counts.setflags(write=False)
    return counts


def weighted_mean(samples: np.ndarray, power: float = 1.0) -> Statistic:
    """W -> (sum_n w_n x_n^power / sum_n w_n)^(1/power) without the samples that are NaN."""
    kept = ~np.isnan(samples)
    values = np.where(kept, samples, 0.0) ** power

    def statistic(weights: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            out: np.ndarray = ((weights @ values) / (weights @ kept)) ** (1 / power)
            return out

    return statistic


def interval(
    statistic: Statistic, n: int, *, resamples: int = 2000, level: float = 0.95, seed: int = 0, linear: bool = False
) -> Interval | None:
    """The BCa interval of a statistic of n samples; None if the statistic is not finite."""
    if not 0 < level < 1:
        raise UserError(f"level must lie between 0 and 1, got {level}")
    estimate = float(statistic(np.ones((1, n)))[0])
    drawn = statistic(resample_counts(n, resamples, seed))
    drawn = drawn[np.isfinite(drawn)]
    if not np.isfinite(estimate) or len(drawn) < resamples / 2:
        return None
    from scipy.special import ndtr, ndtri  # slow to import

    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    below = np.mean(drawn < estimate) + 0.5 * np.mean(drawn == estimate)
    bias = ndtri(below)
    if abs(bias) > MAX_BIAS:
        least = 0.0 if drawn.min() >= 0 else -np.inf  # a distance is not negative
        high, low = np.maximum(2 * estimate - np.quantile(drawn, tails), least)
        return Interval(float(low), float(high), level, "basic")
    left_out = statistic(np.ones((n, n)) - np.eye(n))
    away = np.nanmean(left_out) - left_out[np.isfinite(left_out)]
    size = np.sum(away**2) ** 1.5
    skew = float(np.sum(away**3) / (6 * size)) if size > 0 else 0.0
    reach = bias + ndtri(tails)
    low, high = np.quantile(drawn, ndtr(bias + reach / (1 - skew * reach)))
    return Interval(float(low), float(high), level, "bca-linear" if linear else "bca")
