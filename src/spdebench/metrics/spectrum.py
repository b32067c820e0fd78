"""Errors of the energy at each spatial scale: in shells and in dyadic blocks of wave numbers.

Unlike L2 errors, they detect that a prediction lacks the small scales.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from spdebench.grids import Grid
from spdebench.metrics.base import Measurement, Metric
from spdebench.metrics.bootstrap import Statistic
from spdebench.metrics.fields import Pair
from spdebench.metrics.scores import Kind
from spdebench.metrics.sobolev import powers

RESOLVED = 1e-10  # energies below this fraction of the largest one are rounding errors


def shell_numbers(grid: Grid) -> Tensor:
    """|kappa| in units of the smallest wave number of the box, for every stored mode (flattened); float64."""
    unit = (2 * math.pi if grid.periodic else math.pi) / max(grid.lengths)
    return (-grid.laplacian()).clamp(min=0).sqrt().flatten() / unit


def largest_shell(grid: Grid) -> int:
    """The largest shell of wave numbers that is resolved on every axis."""
    half = [(n - 1) // 2 if grid.periodic else n - 1 for n in grid.points]
    unit = max(grid.lengths)
    return min(math.floor(k * unit / length + 1e-9) for k, length in zip(half, grid.lengths, strict=True))


def sample_energies(pair: Pair, bins: Tensor, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Energy in each bin, mean over time, for every sample of V and U: ``(N, count)``. Modes in bin -1 are ignored."""
    member = torch.zeros(len(bins), count, dtype=torch.float64)
    kept = torch.nonzero(bins >= 0).flatten()
    member[kept, bins[kept]] = 1.0
    member = member.to(pair.device)
    found_v, found_u = np.zeros((2, pair.samples_count, count))
    for where, v, u in powers(pair, pair.grid, error=False):
        found_v[where], found_u[where] = ((x.mean(1) @ member).cpu().numpy() for x in (v, u))
    return found_v, found_u


@dataclass(frozen=True)
class SpectrumError(Metric, name="spectrum", title="energy spectrum"):
    """mean_k | log10 E_V(k) / E_U(k) |,  E(k) = (1/N T) sum_nj sum_{|kappa| in shell k} |u^_kappa|^2.

    Source: the error of the energy spectrum in decades, over shells k = 1.. that are resolved on every axis and in
    which the truth has energy. An empty shell of V counts as 1e-10 of the largest energy. ``relative_l1`` is sum_k |E_V
    - E_U| / sum_k E_U. ``prediction`` and ``truth`` are the two spectra from k = 0.
    """

    kind: ClassVar[Kind] = "law"

    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement:
        top = largest_shell(pair.grid)
        bins = torch.round(shell_numbers(pair.grid)).long()
        v, u = sample_energies(pair, torch.where(bins <= top, bins, -1), top + 1)
        mean_v, mean_u = v.mean(0), u.mean(0)
        floor = RESOLVED * mean_u.max()
        used = (mean_u > floor) & (np.arange(top + 1) > 0)
        details = {
            "relative_l1": float(np.abs(mean_v - mean_u).sum() / mean_u.sum()) if mean_u.sum() > 0 else math.nan,
            "shells": int(used.sum()),
            "prediction": mean_v.tolist(),
            "truth": mean_u.tolist(),
        }
        if not used.any():
            return Measurement(math.nan, details=details)

        def statistic(weights: np.ndarray) -> np.ndarray:
            share = weights / weights.sum(1, keepdims=True)
            ratio = np.maximum(share @ v[:, used], floor) / np.maximum(share @ u[:, used], floor)
            out: np.ndarray = np.abs(np.log10(ratio)).mean(1)
            return out

        value = float(statistic(np.ones((1, pair.samples_count)))[0])
        return Measurement(value, details=details, resample=statistic)


@dataclass(frozen=True)
class LittlewoodPaley(Metric, name="lp_slope", title="Littlewood-Paley slope"):
    """| alpha_V - alpha_U |,  alpha = - slope of log2 ||Delta_j u||_2 against j,  Delta_j: modes 2^j <= |k| < 2^{j+1}.

    Source: the Littlewood-Paley characterisation of the Besov space B^alpha_{2,inf}. |k| is in units of the smallest
    wave number, the blocks j = 1.. are resolved on every axis, and norms are over samples, time and space.
    ``prediction`` and ``truth`` are the two exponents. inf if V has no energy in a block; NaN if U has none.
    """

    kind: ClassVar[Kind] = "law"

    def refuses(self, pair: Pair) -> str | None:
        if self._blocks(pair.grid) > 1:
            return None
        return f"needs 2 dyadic blocks of wave numbers above 1; {pair.grid.points} points resolve fewer"

    @staticmethod
    def _blocks(grid: Grid) -> int:
        """The number of dyadic blocks that are resolved on every axis."""
        return int(math.log2(largest_shell(grid) + 1)) - 1

    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement:
        count = self._blocks(pair.grid)
        shells = shell_numbers(pair.grid)
        block = torch.floor(torch.log2(shells.clamp(min=1.0) + 1e-9)).long() - 1
        v, u = sample_energies(pair, torch.where((block >= 0) & (block < count), block, -1), count)
        slope = exponent(np.arange(1.0, count + 1))
        return exponent_gap(v, u, lambda energy: -0.5 * slope(energy))


def exponent(abscissa: np.ndarray) -> Statistic:
    """The function rows of positive values -> least-squares slopes of log2(values) against ``abscissa``."""
    centred = abscissa - abscissa.mean()
    coefficients = centred / np.sum(centred**2)
    return lambda values: np.log2(values) @ coefficients


def exponent_gap(v: np.ndarray, u: np.ndarray, fit: Statistic) -> Measurement:
    """|exponent of mean_n v - exponent of mean_n u| from per-sample tables ``(N, scales)`` of powers."""
    empty = RESOLVED * u.mean(0).max()
    if (u.mean(0) <= empty).any():
        return Measurement(math.nan)
    if (v.mean(0) <= RESOLVED * empty).any():
        return Measurement(math.inf, details={"truth": float(fit(u.mean(0))), "prediction": math.inf})

    def statistic(weights: np.ndarray) -> np.ndarray:
        share = weights / weights.sum(1, keepdims=True)
        out: np.ndarray = np.abs(fit(share @ v) - fit(share @ u))
        return out

    details = {"prediction": float(fit(v.mean(0))), "truth": float(fit(u.mean(0)))}
    value = abs(details["prediction"] - details["truth"])
    return Measurement(value, details=details, resample=statistic)
