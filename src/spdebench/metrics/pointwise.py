"""Errors of single samples: e = V - U, V and U with the same noise. Indices: n samples, i space, j = 1..T time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from spdebench.metrics.base import Measurement, Metric, require
from spdebench.metrics.fields import Pair


def power_sums(pair: Pair, p: float) -> tuple[np.ndarray, np.ndarray]:
    """sum_i |e|^p and sum_i |U|^p for every sample and scored frame, ``(N, T)``."""
    if p == 2:
        return pair.squares
    return pair.tabulate(lambda field: field.abs().pow(p).sum(2, dtype=torch.float64))


def ratio(error: np.ndarray, size: np.ndarray) -> np.ndarray:
    """error / size; NaN (excluded) where the truth vanishes, but inf wherever the prediction is not finite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.isinf(error), np.inf, np.where(size > 0, error / size, np.nan))


def mean_without_nan(values: np.ndarray) -> np.ndarray:
    """Mean over the first axis without the excluded (NaN) entries; NaN if none is left."""
    kept = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        out: np.ndarray = np.where(kept, values, 0.0).sum(0) / kept.sum(0)
        return out


def relative_measurement(error: np.ndarray, size: np.ndarray, p: float) -> Measurement:
    """The mean of per-sample ratios, its curve and the pooled ratio, from ``(N, T)`` tables of p-th powers of norms."""
    values = ratio(error.sum(1), size.sum(1)) ** (1 / p)
    curve = mean_without_nan(ratio(error, size) ** (1 / p))
    details = {
        "pooled": float(ratio(error.sum(), size.sum()) ** (1 / p)),
        "zero_norm_samples": int((size.sum(1) == 0).sum()),
    }
    return Measurement(float(mean_without_nan(values)), values, "mean", curve, details)


@dataclass(frozen=True)
class _Power(Metric):
    """Base of metrics that sum p-th powers."""

    p: float = 2.0

    def __post_init__(self) -> None:
        require(self.p >= 1, f"{self.name}: p must be at least 1, got {self.p}")


@dataclass(frozen=True)
class RelativeLp(_Power, name="rel_l2", title="relative L2"):
    """(1/N) sum_n ( sum_ij |e|^p / sum_ij |U|^p )^{1/p}, p = 2.

    Source: the paper, "Relative L2 Error". Samples with U = 0 are excluded and counted. ``pooled`` is the ratio of the
    sums over all samples. The curve is the same ratio at each time.
    """

    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement:
        return relative_measurement(*power_sums(pair, self.p), self.p)


@dataclass(frozen=True)
class RelativeL1(RelativeLp, name="rel_l1", title="relative L1"):
    """(1/N) sum_n sum_ij |e| / sum_ij |U|.

    Source: the relative L^p error with p = 1, which is less sensitive to extreme values than p = 2.
    """

    p: float = 1.0


@dataclass(frozen=True)
class AbsoluteLp(_Power, name="l2", title="L2"):
    """(1/N) sum_n ( sum_ij dx^d dt |e|^p )^{1/p}, p = 2.

    Source: the norm of L^p(box x [0, T]); it does not change when the grid is refined. The curve is the norm in space.
    """

    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement:
        error = power_sums(pair, self.p)[0] * (pair.grid.volume / pair.space)
        values = (error.sum(1) * pair.dt) ** (1 / self.p)
        return Measurement(float(values.mean()), values, "mean", (error ** (1 / self.p)).mean(0))


@dataclass(frozen=True)
class AbsoluteL1(AbsoluteLp, name="l1", title="L1"):
    """(1/N) sum_n sum_ij dx^d dt |e|.

    Source: the norm of L^1(box x [0, T]).
    """

    p: float = 1.0


@dataclass(frozen=True)
class PaperL2(Metric, name="l2_paper", title="L2, unscaled"):
    """(1/N) sum_n ( sum_ij |e|^2 )^{1/2}.

    Source: the paper, "L2 Metric": the Euclidean norm of the array, which grows like sqrt(points x steps). Use it only
    to compare with published numbers; `l2` is comparable between grids.
    """

    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement:
        error = pair.squares[0]
        values = np.sqrt(error.sum(1))
        return Measurement(float(values.mean()), values, "mean", np.sqrt(error).mean(0))


@dataclass(frozen=True)
class MeanSquare(Metric, name="mse", title="MSE"):
    """(1/(N D T)) sum_nij e^2.

    Source: the paper, "Mean Squared Error", over the whole test set at once.
    """

    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement:
        error = pair.squares[0] / pair.space
        values = error.mean(1)
        return Measurement(float(values.mean()), values, "mean", error.mean(0))


@dataclass(frozen=True)
class RootMeanSquare(Metric, name="rmse", title="RMSE"):
    """( (1/(N D T)) sum_nij e^2 )^{1/2}.

    Source: the paper, "Root Mean Squared Error": the root is taken once, after the mean over all samples.
    """

    normalised: ClassVar[bool] = False

    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement:
        unit = pair.spread_truth if self.normalised else 1.0
        details = {"truth_std": unit} if self.normalised else {}
        if unit == 0:
            return Measurement(float("nan") if pair.finite else float("inf"), details=details)
        error = pair.squares[0] / (pair.space * unit**2)
        values = np.sqrt(error.mean(1))
        return Measurement(float(np.sqrt(error.mean())), values, "rms", np.sqrt(error.mean(0)), details)


@dataclass(frozen=True)
class NormalisedRootMeanSquare(RootMeanSquare, name="nrmse", title="RMSE / std of u"):
    """RMSE / s,  s^2 = (1/(N D T)) sum_nij (U - mean_n U)^2.

    Source: RMSE in units of the standard deviation of the truth. Predicting the mean field gives 1. NaN if U is
    constant.
    """

    normalised: ClassVar[bool] = True
