"""Errors of the Hoelder exponent, estimated from increments in space or in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from spdebench.metrics.base import Measurement, Metric, require
from spdebench.metrics.fields import Pair
from spdebench.metrics.scores import Kind
from spdebench.metrics.spectrum import exponent, exponent_gap


def dyadic_lags(length: int) -> list[int]:
    """1, 2, 4, .. up to an eighth of the length, but at least 1 and 2."""
    return [2**k for k in range(length.bit_length()) if 2**k <= max(2, length // 8)]


@dataclass(frozen=True)
class StructureFunction(Metric, name="structure", title="exponent in space"):
    """| H_V - H_U |,  H = slope of log2 S_p(r) against log2 r, over p,  S_p(r) = E |u(x + r) - u(x)|^p,  p = 2.

    Source: Kolmogorov's structure functions. The expectation is over samples, time and space, and r = 1, 2, 4 .. N/8
    grid steps along every axis. H is the Hoelder exponent if 0 < H < 1 (1/2 for Phi41 and KPZ in space). ``prediction``
    and ``truth`` are the two exponents. inf if V is constant, NaN if U is.
    """

    p: float = 2.0
    kind: ClassVar[Kind] = "law"

    def __post_init__(self) -> None:
        require(self.p > 0, f"{self.name}: p must be positive, got {self.p}")

    def _lags(self, pair: Pair) -> list[int]:
        """The distances r in grid steps."""
        return dyadic_lags(min(pair.grid.points))

    def _increments(self, field: Tensor, lag: int, pair: Pair) -> Iterator[Tensor]:
        """u(x + r) - u(x) along each axis; on a Dirichlet grid only between stored points."""
        for axis in pair.grid.axes:
            if pair.grid.periodic:
                yield field.roll(-lag, axis) - field
            else:
                inner = field.shape[axis] - lag
                yield field.narrow(axis, lag, inner) - field.narrow(axis, 0, inner)

    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement:
        lags = self._lags(pair)
        tables = np.zeros((2, pair.samples_count, len(lags)))
        for where, v, u in pair.samples():
            for table, field in zip(tables, (v, u), strict=True):
                for column, lag in enumerate(lags):
                    table[where, column] = self._moment(field, lag, pair).cpu().numpy()
        slope = exponent(np.log2(lags))
        return exponent_gap(tables[0], tables[1], lambda moments: slope(moments) / self.p)

    def _moment(self, field: Tensor, lag: int, pair: Pair) -> Tensor:
        """S_p(lag) of every sample, averaged over the axes."""
        each = [d.flatten(1).abs().pow(self.p).mean(1, dtype=torch.float64) for d in self._increments(field, lag, pair)]
        return torch.stack(each).mean(0)


@dataclass(frozen=True)
class TimeStructureFunction(StructureFunction, name="structure_time", title="exponent in time"):
    """| H_V - H_U |,  H = slope of log2 S_p(s) against log2 s, over p,  S_p(s) = E |u(t + s, x) - u(t, x)|^p,  p = 2.

    Source: as for `structure`, with increments in time over s = 1, 2, 4 .. T/8 frames of t_1..t_T (H = 1/4 for Phi41
    and KPZ, 1/2 for a Brownian path).
    """

    def refuses(self, pair: Pair) -> str | None:
        return None if pair.steps > 2 else f"needs at least 3 scored frames, got {pair.steps}"

    def _lags(self, pair: Pair) -> list[int]:
        return dyadic_lags(pair.steps)

    def _increments(self, field: Tensor, lag: int, pair: Pair) -> Iterator[Tensor]:
        yield field[:, lag:] - field[:, :-lag]
