"""The grid of a field: a box, its points, its boundary condition, and the transform that diagonalises its Laplacian.

Periodic axis of length L with N points, x_j = lower + j L/N, j = 0..N-1 (the duplicate end is not stored):
    u(x_j) = sum_k c_k exp(i kappa_k (x_j - lower)),   kappa_k = 2 pi k / L          (half spectrum on the last axis)
Dirichlet axis, x_j = lower + j L/N, j = 0..N-1 (u_0 = 0 is stored, u_N = 0 is implied):
    u(x_j) = sum_{k=1}^{N-1} b_k sin(kappa_k (x_j - lower)),   kappa_k = pi k / L    (slot 0 holds 0)

Coefficients are those of the function and not of the array: they do not change when the grid is refined, so that
`resize` between grids only copies them. At Nyquist (k = N/2, N even, periodic) a grid represents only cos(pi j);
`resize` drops this mode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from spdebench import spec
from spdebench.errors import UserError

Boundary = Literal["periodic", "dirichlet"]


@dataclass(frozen=True)
class Grid:
    """A box ``[lower, upper]`` with ``points`` per axis and one boundary condition; arrays end in the space axes."""

    points: tuple[int, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    boundary: Boundary = "periodic"

    def __post_init__(self) -> None:
        if not (len(self.points) == len(self.lower) == len(self.upper) >= 1):
            raise UserError(f"grid: points {self.points}, lower {self.lower} and upper {self.upper} differ in length")
        if min(self.points) < 4:
            raise UserError(f"grid: at least 4 points per axis are needed, got {min(self.points)}")
        if any(b <= a for a, b in zip(self.lower, self.upper, strict=True)):
            raise UserError(f"grid: upper {self.upper} must exceed lower {self.lower}")
        if self.boundary not in ("periodic", "dirichlet"):
            raise UserError(f"grid: boundary must be periodic or dirichlet, got '{self.boundary}'")

    @staticmethod
    def from_dict(values: Any) -> Grid:
        """The grid with the fields ``values``, which were read from a file."""
        return spec.build(Grid, values, "grid")

    @staticmethod
    def unit(points: int | Sequence[int], dim: int = 1, boundary: Boundary = "periodic") -> Grid:
        """The unit box [0,1]^dim."""
        n = (points,) * dim if isinstance(points, int) else tuple(points)
        return Grid(n, (0.0,) * len(n), (1.0,) * len(n), boundary)

    # --- geometry -------------------------------------------------------------------------------------------------
    @property
    def dim(self) -> int:
        return len(self.points)

    @property
    def axes(self) -> tuple[int, ...]:
        """The space axes of any array on this grid, counted from its end."""
        return tuple(range(-self.dim, 0))

    @property
    def lengths(self) -> tuple[float, ...]:
        return tuple(b - a for a, b in zip(self.lower, self.upper, strict=True))

    @property
    def spacing(self) -> tuple[float, ...]:
        return tuple(length / n for length, n in zip(self.lengths, self.points, strict=True))

    @property
    def volume(self) -> float:
        return math.prod(self.lengths)

    @property
    def periodic(self) -> bool:
        return self.boundary == "periodic"

    def with_points(self, points: int | Sequence[int]) -> Grid:
        """The same box and boundary with another number of points per axis."""
        n = (points,) * self.dim if isinstance(points, int) else tuple(points)
        return Grid(n, self.lower, self.upper, self.boundary)

    def coordinates(self, axis: int, device: torch.device | str = "cpu") -> Tensor:
        """x_j along one axis (0-based), float64."""
        steps = torch.arange(self.points[axis], dtype=torch.float64, device=device)
        return self.lower[axis] + steps * self.spacing[axis]

    def mesh(self, device: torch.device | str = "cpu") -> tuple[Tensor, ...]:
        """The coordinates, one tensor per axis, shaped so that they broadcast to a field."""
        return tuple(self._along(self.coordinates(a, device), a) for a in range(self.dim))

    def _along(self, values: Tensor, axis: int) -> Tensor:
        """One-dimensional values along ``axis``, shaped so that they broadcast to a field."""
        shape = [1] * self.dim
        shape[axis] = -1
        return values.reshape(shape)

    # --- spectrum -------------------------------------------------------------------------------------------------
    @property
    def spectral_shape(self) -> tuple[int, ...]:
        """The shape of the coefficients of a field."""
        return (*self.points[:-1], self.points[-1] // 2 + 1) if self.periodic else self.points

    def mode_numbers(self, axis: int, device: torch.device | str = "cpu") -> Tensor:
        """The integers k along one axis of the coefficient array, in its order."""
        n = self.points[axis]
        if not self.periodic or axis == self.dim - 1:
            return torch.arange(self.spectral_shape[axis], device=device)
        k = torch.arange(n, device=device)
        return torch.where(k <= n // 2, k, k - n) if n % 2 else torch.where(k < n // 2, k, k - n)

    def wavenumbers(self, device: torch.device | str = "cpu") -> tuple[Tensor, ...]:
        """kappa_k, one tensor per axis, broadcasting to the coefficient array."""
        unit = 2 * math.pi if self.periodic else math.pi
        return tuple(
            self._along(self.mode_numbers(a, device).to(torch.float64) * (unit / self.lengths[a]), a)
            for a in range(self.dim)
        )

    def laplacian(self, *, difference: bool = False, device: torch.device | str = "cpu") -> Tensor:
        """Symbol of the Laplacian: -|kappa|^2, or -sum (2/h sin(kappa h/2))^2 of the three-point difference."""
        total: Tensor | float = 0.0
        for kappa, h in zip(self.wavenumbers(device), self.spacing, strict=True):
            total = total - ((2 / h * torch.sin(kappa * h / 2)) ** 2 if difference else kappa**2)
        assert isinstance(total, Tensor)
        return total.expand(self.spectral_shape).contiguous()

    def derivative(self, axis: int = 0, *, difference: bool = False, device: torch.device | str = "cpu") -> Tensor:
        """Symbol of d/dx on a periodic axis: i kappa (0 at Nyquist), or i sin(kappa h)/h of the central difference."""
        if not self.periodic:
            raise UserError("grid: a derivative turns sines into cosines; it has no symbol on a Dirichlet grid")
        kappa, h, n = self.wavenumbers(device)[axis], self.spacing[axis], self.points[axis]
        real = torch.sin(kappa * h) / h if difference else kappa
        if n % 2 == 0:
            nyquist = self._along(self.mode_numbers(axis, device).abs() == n // 2, axis)
            real = torch.where(nyquist, torch.zeros_like(real), real)
        return torch.complex(torch.zeros_like(real), real)

    def multiplicity(self, device: torch.device | str = "cpu") -> Tensor:
        """Weights w_k with mean(u^2) = sum_k w_k |c_k|^2 (Parseval on the stored half; 1/2^dim for sines)."""
        if not self.periodic:
            return torch.full(self.spectral_shape, 0.5**self.dim, dtype=torch.float64, device=device)
        n, k = self.points[-1], self.mode_numbers(self.dim - 1, device)
        doubled = (k > 0) & ((n % 2 == 1) | (k < n // 2))
        return torch.where(doubled, 2.0, 1.0).to(torch.float64).expand(self.spectral_shape).contiguous()

    # --- transforms -----------------------------------------------------------------------------------------------
    def transform(self, field: Tensor) -> Tensor:
        """The coefficients of a field: (.., points) -> (.., spectrum)."""
        if self.periodic:
            coefficients: Tensor = torch.fft.rfftn(field, dim=self.axes, norm="forward")
            return coefficients
        for axis in self.axes:
            field = _sine_sums(field, axis, 2 / self.points[axis])
        return field

    def inverse(self, coefficients: Tensor) -> Tensor:
        """The field with the given coefficients: (.., spectrum) -> (.., points)."""
        if self.periodic:
            field: Tensor = torch.fft.irfftn(coefficients, s=self.points, dim=self.axes, norm="forward")
            return field
        for axis in self.axes:
            coefficients = _sine_sums(coefficients, axis, 1.0)
        return coefficients

    def resize(self, coefficients: Tensor, target: Grid) -> Tensor:
        """The coefficients on another grid of the same box: modes that both resolve are copied, the rest are 0."""
        if target.points == self.points:
            return coefficients
        for axis in range(self.dim):
            coefficients = self._resize_axis(coefficients, axis, target)
        return coefficients

    def _resize_axis(self, c: Tensor, axis: int, target: Grid) -> Tensor:
        n, m = self.points[axis], target.points[axis]
        if n == m:
            return c
        dim = axis - self.dim
        shape = list(c.shape)
        shape[dim] = target.spectral_shape[axis]
        out = c.new_zeros(shape)
        if not self.periodic:
            top = min(n, m)
            out.narrow(dim, 0, top).copy_(c.narrow(dim, 0, top))
            return out
        top = (min(n, m) - 1) // 2  # the largest |k| that both resolve as a cosine and a sine
        out.narrow(dim, 0, top + 1).copy_(c.narrow(dim, 0, top + 1))
        if axis < self.dim - 1 and top:
            out.narrow(dim, m - top, top).copy_(c.narrow(dim, n - top, top))
        return out


def _sine_sums(values: Tensor, axis: int, scale: float) -> Tensor:
    """scale * sum_{k=1}^{N-1} v_k sin(pi j k/N), j = 0..N-1: the sine transform I, its own inverse up to 2/N.

    sin is the imaginary part of a Fourier series of period 2N whose coefficients are -i/2 v_k and their conjugates.
    """
    n = values.shape[axis]
    half = values * complex(0.0, -0.5 * scale)
    sums: Tensor = torch.fft.irfft(half, n=2 * n, dim=axis, norm="forward")
    return sums.narrow(axis, 0, n)
