"""The Haar basis: step functions on dyadic intervals."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from spdebench.grids import Grid
from spdebench.noise.base import Basis


class Haar(Basis):
    """1/sqrt(L), then 2^(d/2)/sqrt(L) psi(2^d x/L - i), d = 0, 1, .., i < 2^d, psi = 1 on [0,1/2), -1 on [1/2,1).

    The first J functions in this order. The value at a grid point is that of the cell that begins there; `projected`
    integrates the step function against the grid's modes exactly, for every J.
    """

    name = "haar"

    def __init__(self, truncation: int) -> None:
        self.functions = truncation
        self.pairs = (truncation + 1) // 2
        self.levels = max(0, (truncation - 1).bit_length())

    @property
    def index(self) -> Tensor:
        j = torch.arange(1, 2 * self.pairs + 1).reshape(self.pairs, 2)
        return torch.where(j <= self.functions, j, 0)

    def _kept(self, truncation: int) -> Tensor:
        return self.index <= truncation

    def resolved_by(self, grid: Grid) -> bool:
        return (1 << self.levels) <= grid.points[0]

    def cells(self, z: Tensor, length: float) -> Tensor:
        """The values of the series on its 2^levels cells, by the inverse Haar transform: (.., pairs) -> (.., cells)."""
        beta = torch.view_as_real(z).flatten(-2)[..., : self.functions] * (1 / math.sqrt(length))
        size = 1 << self.levels
        if size > self.functions:
            beta = torch.nn.functional.pad(beta, (0, size - self.functions))
        values = beta[..., :1]
        for d in range(self.levels):
            detail = beta[..., 1 << d : 2 << d] * 2 ** (d / 2)
            finer = values.new_empty((*values.shape, 2))
            torch.add(values, detail, out=finer[..., 0])
            torch.sub(values, detail, out=finer[..., 1])
            values = finer.flatten(-2)
        return values

    def physical(self, z: Tensor, grid: Grid) -> Tensor:
        cells, n = self.cells(z, grid.lengths[0]), grid.points[0]
        m = cells.shape[-1]
        field = cells[..., :: m // n] if m % n == 0 else cells[..., torch.arange(n, device=z.device) * m // n]
        if not grid.periodic:
            field[..., 0] = 0
        return field

    def spectral(self, z: Tensor, grid: Grid) -> Tensor:
        return grid.transform(self.physical(z, grid))

    def projected(self, z: Tensor, grid: Grid) -> Tensor:
        cells = self.cells(z, grid.lengths[0])
        m = cells.shape[-1]
        k = grid.mode_numbers(0, z.device)
        if grid.periodic:
            # c_k = sinc(k/m) exp(-i pi k/m) (1/m) sum_c w_c exp(-2 pi i k c/m); the sum has period m in k
            full: Tensor = torch.fft.fft(cells, norm="forward")
            theta = math.pi * k.to(torch.float64) / m
            factor = torch.polar(torch.sinc(k.to(torch.float64) / m), -theta)
            out = full[..., k % m] * factor
            if grid.points[0] % 2 == 0:
                out[..., -1] = 0
            return out
        # b_k = 4/(k pi) sin(k pi/2m) sum_c w_c sin(k pi (c + 1/2)/m): a sine transform II of the odd extension
        odd: Tensor = torch.fft.fft(torch.cat((cells, -cells.flip(-1)), dim=-1))[..., k % (2 * m)]
        theta = math.pi * k.to(torch.float64) / (2 * m)
        sums = (odd * torch.polar(torch.full_like(theta, 0.5), math.pi / 2 - theta)).real
        scale = torch.where(k > 0, 4 * torch.sin(theta) / (math.pi * k.clamp(min=1)), torch.zeros_like(theta))
        return sums * scale
