"""Confidence intervals over test samples.

A statistic is a function of sample weights: ``statistic(W)`` maps weights ``(R, N)`` to ``R`` values; resamples are
multinomial counts, the jackknife leaves one sample out. BCa (B. Efron, "Better bootstrap confidence intervals", 1987):
    ends at the quantiles Phi(z0 + (z0 + z) / (1 - a (z0 + z))) of the resampled values, z = Phi^-1(tail),
    z0 = Phi^-1(share of resampled values below the estimate),   a = sum d^3 / (6 (sum d^2)^{3/2}),  d = jackknife.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from spdebench.errors import UserError

Statistic = Callable[[np.ndarray], np.ndarray]

MAX_BIAS = 1.0  # |z0| beyond which BCa leans on the far tail of the resamples; the basic interval is used instead


@dataclass(frozen=True)
class Interval:
    """``[low, high]`` at ``level``; method ``bca``, ``bca-linear`` (of pseudo-values) or ``basic``.

    ``basic`` is 2 estimate - quantiles, used where resampling shows a strong bias: a norm of a mean is too large, and
    such an interval may lie below the estimate itself.
    """

    low: float
    high: float
    level: float
    method: str


@lru_cache(maxsize=4)
def resample_counts(n: int, resamples: int, seed: int) -> np.ndarray:
    """How often each of n samples is drawn, ``(resamples, n)``; the same for every metric, so that they are paired."""
    if resamples < 100:
        raise UserError(f"resamples must be 0 (no intervals) or at least 100, got {resamples}")
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples).astype(np.float64)
    counts.setflags(write=False)
    return counts


def weighted_mean(samples: np.ndarray, power: float = 1.0) -> Statistic:
    """W -> (sum_n w_n x_n^power / sum_n w_n)^(1/power), samples that are NaN left out."""
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
    """The BCa interval of a statistic of n samples; None where the statistic is not finite."""
    if not 0 < level < 1:
        raise UserError(f"level must lie between 0 and 1, got {level}")
    estimate = float(statistic(np.ones((1, n)))[0])
    drawn = statistic(resample_counts(n, resamples, seed))
    drawn = drawn[np.isfinite(drawn)]
    if not np.isfinite(estimate) or len(drawn) < resamples / 2:
        return None
    from scipy.special import ndtr, ndtri  # slow to import

    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    share = np.mean(drawn < estimate) + 0.5 * np.mean(drawn == estimate)
    bias = ndtri(share)
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
