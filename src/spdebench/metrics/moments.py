"""Errors of the first four moments at every point and time: maps over (t, x), and one number for each map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from spdebench.grids import Grid
from spdebench.metrics.base import Measurement, Metric
from spdebench.metrics.fields import CONSTANT, Pair
from spdebench.metrics.scores import Kind

MOMENTS = ("mean", "std", "skewness", "kurtosis")


def moments(columns: Tensor, scale: float) -> Tensor:
    """Mean, std, skewness and kurtosis over the last axis, stacked along a new first axis, float64.

    Skewness and kurtosis of a constant column are 0.
    """
    mean = columns.mean(-1, dtype=torch.float64)
    away = columns.double() - mean.unsqueeze(-1)
    square = away.square()
    variance = square.mean(-1)
    std = variance.sqrt()
    varies = std > CONSTANT * scale
    skewness = torch.where(varies, (square * away).mean(-1) / std**3, 0.0)
    kurtosis = torch.where(varies, square.square().mean(-1) / variance**2, 0.0)
    return torch.stack([mean, std, skewness, kurtosis])


def pair_moments(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    """Moment maps of V and of U, ``(4, T, D)``; computed once for all metrics that use them."""
    if "moments" not in pair.memo:
        maps = np.zeros((2, len(MOMENTS), pair.steps, pair.space))
        for where, v, u in pair.points(8 * 3 * pair.samples_count * pair.frames_count):
            for side, columns, scale in zip(maps, (v, u), (pair.scale_prediction, pair.scale_truth), strict=True):
                side[:, :, where] = moments(columns, scale).transpose(1, 2).cpu().numpy()
        pair.memo["moments"] = maps[0], maps[1]
    out: tuple[np.ndarray, np.ndarray] = pair.memo["moments"]
    return out


def moment_maps(prediction: Any, truth: Any, grid: Grid, *, has_t0: bool = True) -> dict[str, dict[str, np.ndarray]]:
    """``maps["std"]["prediction"]`` and ``["truth"]``: mean, std, skewness, kurtosis over samples, ``(T, *points)``."""
    pair = Pair(prediction, truth, grid, has_t0=has_t0)
    shape = (pair.steps, *grid.points)
    v, u = pair_moments(pair)
    return {name: {"prediction": v[k].reshape(shape), "truth": u[k].reshape(shape)} for k, name in enumerate(MOMENTS)}


def _root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


@dataclass(frozen=True)
class MeanFieldError(Metric, name="moment_mean", title="mean"):
    """rms_{t,x} ( mean_n V - mean_n U ) / s,  s^2 = mean_{n,t,x} (U - mean_n U)^2.

    Source: the map of means, in units of the standard deviation of the truth. NaN if U does not vary.
    """

    kind: ClassVar[Kind] = "law"
    order: ClassVar[int] = 0

    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement:
        v, u = pair_moments(pair)
        varies = u[1] > CONSTANT * pair.scale_truth
        if not varies.any():
            return Measurement(math.nan)
        return self._compare(v, u, varies, pair)

    def _compare(self, v: np.ndarray, u: np.ndarray, varies: np.ndarray, pair: Pair) -> Measurement:
        gap = (v[self.order] - u[self.order]) / pair.spread_truth
        return Measurement(_root_mean_square(gap), curve=np.sqrt(np.mean(gap**2, axis=1)))


@dataclass(frozen=True)
class DeviationError(MeanFieldError, name="moment_std", title="standard deviation"):
    """rms_{t,x} ( std_n V - std_n U ) / rms_{t,x} std_n U.

    Source: the map of standard deviations. Predicting the mean field gives 1.
    """

    order: ClassVar[int] = 1

    def _compare(self, v: np.ndarray, u: np.ndarray, varies: np.ndarray, pair: Pair) -> Measurement:
        gap = (v[1] - u[1]) / _root_mean_square(u[1])
        return Measurement(_root_mean_square(gap), curve=np.sqrt(np.mean(gap**2, axis=1)))


@dataclass(frozen=True)
class DeviationRatio(MeanFieldError, name="std_ratio", title="ratio of spreads"):
    """rms_{t,x} std_n V / rms_{t,x} std_n U; 1 is ideal, a value below 1 means too little spread.

    Source: the spread ratio of ensemble forecasting.
    """

    ideal: ClassVar[float] = 1.0

    def _compare(self, v: np.ndarray, u: np.ndarray, varies: np.ndarray, pair: Pair) -> Measurement:
        with np.errstate(divide="ignore", invalid="ignore"):
            curve = np.sqrt(np.mean(v[1] ** 2, axis=1) / np.mean(u[1] ** 2, axis=1))
        return Measurement(_root_mean_square(v[1]) / _root_mean_square(u[1]), curve=curve)


@dataclass(frozen=True)
class SkewnessError(MeanFieldError, name="moment_skewness", title="skewness"):
    """rms_{t,x} ( skew_n V - skew_n U ),  skew = mean (u - mean)^3 / std^3.

    Source: the map of skewness, where the truth varies; a constant column of V has skewness 0.
    """

    order: ClassVar[int] = 2

    def _compare(self, v: np.ndarray, u: np.ndarray, varies: np.ndarray, pair: Pair) -> Measurement:
        gap = (v[self.order] - u[self.order])[varies]
        return Measurement(_root_mean_square(gap), details={"valid_fraction": float(varies.mean())})


@dataclass(frozen=True)
class KurtosisError(SkewnessError, name="moment_kurtosis", title="kurtosis"):
    """rms_{t,x} ( kurt_n V - kurt_n U ),  kurt = mean (u - mean)^4 / std^4.

    Source: the map of kurtosis (3 for a Gaussian), where the truth varies; a constant column of V has kurtosis 0.
    """

    order: ClassVar[int] = 3
