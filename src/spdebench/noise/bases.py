"""Orthonormal bases of L^2(0,L) and what a grid sees of a series in them.

A basis pairs its real functions phi_q with the pairs (a, b) of the stream: `index` tells the number j = 1, 2, ... of the
function that each member of each pair drives (0: none). `spectral` and `physical` turn the pairs, already multiplied by
the square roots of the eigenvalues, into the coefficients or the values on a grid in O(J + N log N).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor

from spdebench.errors import UserError
from spdebench.grids import Grid


class Basis(ABC):
    """The first functions of an orthonormal basis on one axis, up to a truncation J."""

    name: str
    functions: int  # real functions in use
    pairs: int  # pairs of normals that a step needs

    @property
    @abstractmethod
    def index(self) -> Tensor:
        """j of the function that each member of a pair drives, 0 for none: (pairs, 2)."""

    @abstractmethod
    def resolved_by(self, grid: Grid) -> bool:
        """Whether the grid tells all functions apart, so that evaluating the series there does not fold."""

    @abstractmethod
    def spectral(self, z: Tensor, grid: Grid) -> Tensor:
        """Grid coefficients of the series evaluated at the grid points."""

    def physical(self, z: Tensor, grid: Grid) -> Tensor:
        """The series at the grid points."""
        return grid.inverse(self.spectral(z, grid))

    def projected(self, z: Tensor, grid: Grid) -> Tensor:
        """Grid coefficients of the L^2 projection of the series onto the grid's modes."""
        if not self.resolved_by(grid):
            raise UserError(
                f"{self.name} noise with {self.functions} functions is not resolved by {grid.points[0]} points"
            )
        return self.spectral(z, grid)


def make_basis(name: str, truncation: int) -> Basis:
    """The basis called ``name`` with truncation J = ``truncation``."""
    if truncation < 1:
        raise UserError(f"truncation must be at least 1, got {truncation}")
    return {"fourier": Fourier, "sine": Sine, "haar": Haar}[name](truncation)


class Fourier(Basis):
    """1/sqrt(L), sqrt(2/L) cos(2 pi k x/L), sqrt(2/L) sin(2 pi k x/L), k = 1..J/2: J+1 functions, periodic.

    The pair (a, b) of harmonic k gives the coefficient c_k = (a + ib)/sqrt(2L) of exp(2 pi i k x/L). On N points a
    harmonic k > N/2 is seen as k mod N. At Nyquist, k = N/2, the grid sees sqrt(2/L) a cos(pi j): the cosine with its
    full weight (variance 2/L, so that Var dW/dt = (J+1)/L holds for J = N too) and nothing of the sine.
    """

    name = "fourier"

    def __init__(self, truncation: int) -> None:
        if truncation % 2:
            raise UserError(
                f"truncation J={truncation}: a Fourier expansion has the harmonics |k| <= J/2, so J is even; "
                f"try {truncation + 1}"
            )
        self.top = truncation // 2
        self.functions = truncation + 1
        self.pairs = self.top + 1

    @property
    def index(self) -> Tensor:
        k = torch.arange(self.pairs)
        return torch.stack((torch.where(k > 0, 2 * k, 1), torch.where(k > 0, 2 * k + 1, 0)), dim=-1)

    def resolved_by(self, grid: Grid) -> bool:
        return 2 * self.top < grid.points[0]

    def spectral(self, z: Tensor, grid: Grid) -> Tensor:
        n, scale = grid.points[0], 1 / math.sqrt(2 * grid.lengths[0])
        half, inner = n // 2, (n - 1) // 2  # inner: the largest harmonic with both a cosine and a sine
        kept = min(half, self.top) + 1
        out = z.new_empty((*z.shape[:-1], half + 1))
        torch.mul(z[..., :kept], scale, out=out[..., :kept])
        out[..., kept:] = 0
        constant = z[..., 0].real * math.sqrt(2)
        for centre in range(n, self.top + half, n):  # harmonics centre - m and centre + m are seen as -m and m
            low, high = max(1, centre - self.top), min(inner, self.top - centre)
            if low <= inner:
                out[..., low : inner + 1] += z[..., centre - inner : centre - low + 1].flip(-1).conj() * scale
            if centre <= self.top:
                constant = constant + 2 * z[..., centre].real
            if high >= 1:
                out[..., 1 : high + 1] += z[..., centre + 1 : centre + high + 1] * scale
            if n % 2 == 0 and centre + half <= self.top:
                out[..., half] += z[..., centre + half] * scale
        real = torch.view_as_real(out)
        real[..., 0, 0] = constant * scale
        real[..., 0, 1] = 0
        if n % 2 == 0 and self.top >= half:
            real[..., half, 0] *= 2
            real[..., half, 1] = 0
        return out


class Sine(Basis):
    """sqrt(2/L) sin(k pi x/L), k = 1..J: J functions, zero at both ends. On N points k > N is seen as -(2N - k)."""

    name = "sine"

    def __init__(self, truncation: int) -> None:
        self.functions = truncation
        self.pairs = (truncation + 1) // 2

    @property
    def index(self) -> Tensor:
        return _consecutive(self.pairs, self.functions)

    def resolved_by(self, grid: Grid) -> bool:
        return self.functions < grid.points[0]

    def spectral(self, z: Tensor, grid: Grid) -> Tensor:
        n = grid.points[0]
        beta = torch.view_as_real(z).flatten(-2)
        out = beta.new_zeros((*z.shape[:-1], n))
        top = min(n - 1, self.functions)
        out[..., 1 : top + 1] = beta[..., :top]
        for centre in range(2 * n, self.functions + n, 2 * n):  # k = centre - m is seen as -m, centre + m as m
            low, high = max(1, centre - self.functions), min(n - 1, self.functions - centre)
            if low < n:
                out[..., low:] -= beta[..., centre - n : centre - low].flip(-1)
            if high >= 1:
                out[..., 1 : high + 1] += beta[..., centre : centre + high]
        return out.mul_(math.sqrt(2 / grid.lengths[0]))


class Haar(Basis):
    """1/sqrt(L), then 2^(d/2)/sqrt(L) psi(2^d x/L - i), d = 0, 1, .., i < 2^d, psi = 1 on [0,1/2), -1 on [1/2,1).

    J functions in this order. On a grid the cell that begins at a point gives its value; `projected` integrates the
    step function against the grid's modes exactly, whatever J is.
    """

    name = "haar"

    def __init__(self, truncation: int) -> None:
        self.functions = truncation
        self.pairs = (truncation + 1) // 2
        self.levels = max(0, (truncation - 1).bit_length())

    @property
    def index(self) -> Tensor:
        return _consecutive(self.pairs, self.functions)

    def resolved_by(self, grid: Grid) -> bool:
        return (1 << self.levels) <= grid.points[0]

    def cells(self, z: Tensor, length: float) -> Tensor:
        """The step function's values on its 2^levels cells, by the inverse Haar transform."""
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
        if m % n == 0:
            field = cells[..., :: m // n]
        else:
            field = cells[..., torch.arange(n, device=z.device) * m // n]
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
            # c_k = sinc(k/m) exp(-i pi k/m) (1/m) sum_c w_c exp(-2 pi i k c/m), of period m in k but for the factors
            full = torch.fft.fft(cells, norm="forward")
            theta = math.pi * k.to(torch.float64) / m
            factor = torch.polar(torch.sinc(k.to(torch.float64) / m), -theta)
            out = full[..., k % m] * factor
            if grid.points[0] % 2 == 0:
                out[..., -1] = 0
            return out
        # b_k = 4/(k pi) sin(k pi/2m) sum_c w_c sin(k pi (c + 1/2)/m): a sine transform II through the odd extension
        odd = torch.fft.fft(torch.cat((cells, -cells.flip(-1)), dim=-1))[..., k % (2 * m)]
        theta = math.pi * k.to(torch.float64) / (2 * m)
        sums = (odd * torch.polar(torch.full_like(theta, 0.5), math.pi / 2 - theta)).real
        scale = torch.where(k > 0, 4 * torch.sin(theta) / (math.pi * k.clamp(min=1)), torch.zeros_like(theta))
        return sums * scale


def _consecutive(pairs: int, functions: int) -> Tensor:
    j = torch.arange(1, 2 * pairs + 1).reshape(pairs, 2)
    return torch.where(j <= functions, j, 0)
