"""Errors of the field and its gradient, computed with the grid's transform (Fourier; sine for Dirichlet)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from spdebench.grids import Grid
from spdebench.metrics.base import Measurement, Metric
from spdebench.metrics.fields import Pair
from spdebench.metrics.pointwise import mean_without_nan, ratio, relative_measurement

FLAT = 1e-8  # if the gradient's share of the squared norm is smaller, it is rounding: the field is constant in space
Wavenumber = Literal["physical", "integer", "compat"]


def power(grid: Grid, field: Tensor) -> Tensor:
    """w_k |c_k|^2 for fields ``(n, T, *points)`` -> ``(n, T, modes)``; its sum over k is the mean of u^2 over space."""
    coefficients = grid.transform(field)
    if coefficients.is_complex():
        size = coefficients.real.square() + coefficients.imag.square()
    else:
        size = coefficients.square()
    return (size * grid.multiplicity(field.device).to(size.dtype)).flatten(2)


def powers(pair: Pair, grid: Grid, *, error: bool) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Blocks of samples: the slice, power of V - U (with ``error``) or of V, and power of U; float64."""
    for where, v, u in pair.samples():
        yield where, power(grid, v - u if error else v).double(), power(grid, u).double()


@dataclass(frozen=True)
class Sobolev(Metric, name="w12", title="relative W12"):
    """(1/N) sum_n ( sum_jk (1 + |kappa_k|^2) |e^_k|^2 / sum_jk (1 + |kappa_k|^2) |U^_k|^2 )^{1/2}.

    Source: the W^{1,2} = H^1 norm in space, L^2 in time, with physical wave numbers kappa = 2 pi k / L on every axis
    (sine transform and pi k / L on a Dirichlet grid). ``seminorm`` is the gradient part alone. Solutions of Phi41 and
    KPZ are rougher than H^1, so compare values only on the same grid. ``wavenumber="integer"`` uses the Fourier
    transform of the stored points and kappa = k, as the paper does; ``"compat"`` has the weight 2 + k^2 in 1-D, as the
    paper's code does.
    """

    wavenumber: Wavenumber = "physical"
    relative: ClassVar[bool] = True

    def refuses(self, pair: Pair) -> str | None:
        if self.wavenumber == "compat" and pair.grid.dim == 3:
            return "with wavenumber=compat is not defined in 3 space dimensions; use wavenumber=integer"
        return None

    def _grid(self, grid: Grid) -> Grid:
        """The grid whose wave numbers are used; integer ones belong to a periodic box of length 2 pi."""
        if self.wavenumber == "physical":
            return grid
        return Grid(grid.points, (0.0,) * grid.dim, (2 * math.pi,) * grid.dim)

    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement:
        grid = self._grid(pair.grid)
        gradient = -grid.laplacian(device=pair.device).flatten()
        floor = 2.0 if self.wavenumber == "compat" and grid.dim == 1 else 1.0
        weights = torch.stack([floor + gradient, gradient], dim=1)
        error, size = np.zeros((2, pair.samples_count, pair.steps, 2))
        for where, e, u in powers(pair, grid, error=True):
            error[where], size[where] = ((x @ weights).cpu().numpy() for x in (e, u))
        error = np.nan_to_num(error, nan=np.inf, posinf=np.inf)
        if self.relative:
            out = relative_measurement(error[..., 0], size[..., 0], 2.0)
            whole, slope = size.sum(1).T
            slope = np.where(slope > FLAT * whole, slope, 0.0)
            out.details["seminorm"] = float(mean_without_nan(np.sqrt(ratio(error[..., 1].sum(1), slope))))
            return out
        norms = np.sqrt(error * pair.grid.volume)
        values = np.sqrt((norms**2).sum(1) * pair.dt)
        details = {"seminorm": float(values[:, 1].mean())}
        return Measurement(float(values[:, 0].mean()), values[:, 0], "mean", norms[..., 0].mean(0), details)


@dataclass(frozen=True)
class PaperSobolev(Sobolev, name="w12_paper", title="relative W12, integer k"):
    """(1/N) sum_n ( sum_jk (1 + |k|^2) |e^_k|^2 / sum_jk (1 + |k|^2) |U^_k|^2 )^{1/2}, k integer.

    Source: the paper, "W^{1,2}-Sobolev Error": the discrete Fourier transform of the stored points and integer wave
    numbers, without 2 pi / L. Use it to compare with published numbers; `w12` is the norm of the function space.
    """

    wavenumber: Wavenumber = "integer"


@dataclass(frozen=True)
class AbsoluteSobolev(Sobolev, name="w12_abs", title="W12"):
    """(1/N) sum_n ( dt sum_j |box| sum_k w_k (1 + |kappa_k|^2) |e^_k|^2 )^{1/2}.

    Source: the norm of L^2(0, T; W^{1,2}), where w_k are the weights of Parseval's identity. For a smooth field it does
    not change when the grid is refined.
    """

    relative: ClassVar[bool] = False
