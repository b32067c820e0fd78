"""Orthonormal bases of L^2 of a box, and the values of a series in such a basis on a grid.

A basis assigns its real functions phi_q to the pairs (a, b) of normals of the stream: `index` gives the number
j = 1, 2, .. of the function that each of the two normals drives (0: none), `function_wavevectors` its wave vector, and
`modes` the number of the pair in the stream. This number depends on the wave vector and not on the truncation, so that
a smaller J is a projection of a larger one. `spectral` and `physical` turn the pairs, already multiplied by the square
roots of the eigenvalues, into the coefficients or the values on a grid in O(functions + N^d log N).
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor

from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.noise import lattice
from spdebench.noise.lattice import GridProjection


class Basis(ABC):
    """The first functions of an orthonormal basis on a box of ``dim`` dimensions, up to a truncation J."""

    name: str
    dim: int = 1
    functions: int  # real functions in use
    pairs: int  # pairs of normals that a step needs

    @property
    @abstractmethod
    def index(self) -> Tensor:
        """j of the function that each normal of a pair drives, 0 for none: (pairs, 2)."""

    @property
    def modes(self) -> Tensor:
        """The number of each pair in the stream: (pairs,), int64; in one dimension 0, 1, 2, ..."""
        return torch.arange(self.pairs)

    def kept_by(self, truncation: int) -> Tensor:
        """Whether a smaller truncation K keeps the function of each normal: (pairs, 2), bool; K = 0 keeps none."""
        if truncation < 0:
            raise UserError(f"a truncation must not be negative, got {truncation}")
        return (self.index > 0) & (self._kept(truncation) if truncation else torch.tensor(False))

    @abstractmethod
    def _kept(self, truncation: int) -> Tensor:
        """`kept_by` for a positive truncation, also where a normal drives no function."""

    @abstractmethod
    def resolved_by(self, grid: Grid) -> bool:
        """Whether all functions are distinct on the grid, so that evaluating the series there does not alias."""

    def aliases_on(self, grid: Grid) -> bool:
        """Whether two functions that do not vanish at the points agree there (aliasing)."""
        return not self.resolved_by(grid)

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
                f"{self.name} noise with {self.functions} functions is not resolved by {grid.points[0]} points per axis"
            )
        return self.spectral(z, grid)


def make_basis(name: str, truncation: int, dim: int = 1) -> Basis:
    """The basis called ``name`` with truncation J = ``truncation`` in ``dim`` dimensions."""
    if truncation < 1:
        raise UserError(f"truncation must be at least 1, got {truncation}")
    if name == "haar":
        if dim != 1:
            raise UserError(f"the Haar basis is one-dimensional; in {dim} dimensions use fourier or sine")
        return Haar(truncation)
    return {"fourier": Fourier, "sine": Sine}[name](truncation, dim)


class Lattice(Basis):
    """A basis whose functions belong to wave vectors; `keeping` leaves out the pairs that are not needed."""

    _vectors: Tensor  # (pairs, 2, dim); the zero vector marks an absent function (and the constant)

    def __init__(self, truncation: int, dim: int, vectors: Tensor) -> None:
        self.truncation, self.dim, self._vectors = truncation, dim, vectors
        self._thinned = False
        self._count()

    def _count(self) -> None:
        self.pairs = len(self._vectors)
        self.functions = int(self.index.max()) if self.pairs else 0
        self._projections: dict[tuple[Grid, str], GridProjection] = {}

    def keeping(self, keep: Tensor) -> Lattice:
        """The same basis, restricted to the pairs for which ``keep`` (pairs,) is true; their numbers do not change."""
        part = copy.copy(self)
        part._vectors, part._thinned = self._vectors[keep], True
        part._count()
        return part

    @property
    def function_wavevectors(self) -> Tensor:
        """The integer wave vector of the function that each normal of a pair drives: (pairs, 2, dim)."""
        return self._vectors

    @property
    def wavevectors(self) -> Tensor:
        """The wave vector of each pair (of its first function, where they differ): (pairs, dim)."""
        return self._vectors[:, 0]

    def projection_on(self, grid: Grid, device: torch.device) -> GridProjection:
        """The map from pairs to the grid's coefficients, computed once for each grid and device."""
        key = (grid, str(device))
        if key not in self._projections:
            self._projections[key] = self._project(grid, device)
        return self._projections[key]

    @abstractmethod
    def _project(self, grid: Grid, device: torch.device) -> GridProjection: ...

    def _top(self, axis: int) -> int:
        """The largest |k_i| along an axis."""
        return int(self._vectors[..., axis].abs().max()) if self.pairs else 0


class Fourier(Lattice):
    """1/sqrt(V), sqrt(2/V) cos(kappa.x), sqrt(2/V) sin(kappa.x), kappa_i = 2 pi k_i/L_i: (J+1)^d functions, periodic.

    One of k and -k is taken for all |k_i| <= J/2. The pair (a, b) of k gives the coefficient c_k = (a + ib)/sqrt(2V)
    of exp(i kappa.x). On N points k equals k mod N. At Nyquist, where k and -k agree at the points, the grid has
    sqrt(2/V) a cos(kappa.x): the cosine with its full weight (variance 2/V, so that in one dimension
    Var dW/dt = (J+1)/L holds for J = N too) and nothing of the sine.
    """

    name = "fourier"

    def __init__(self, truncation: int, dim: int = 1) -> None:
        _check_even(truncation)
        self.top = truncation // 2
        k = lattice.half_lattice(self.top, dim)
        super().__init__(truncation, dim, k[:, None].expand(-1, 2, -1))

    @property
    def index(self) -> Tensor:
        constant = (self.wavevectors == 0).all(1)
        number = torch.where(constant[:, None], torch.tensor([1, 0]), torch.tensor([1, 1])).flatten()
        return (number.cumsum(0) * number).reshape(-1, 2)

    @property
    def modes(self) -> Tensor:
        return lattice.pack(self.wavevectors)

    def _kept(self, truncation: int) -> Tensor:
        _check_even(truncation)
        return (2 * self._vectors.abs() <= truncation).all(-1)

    def resolved_by(self, grid: Grid) -> bool:
        return all(2 * self._top(a) < n for a, n in enumerate(grid.points))

    def aliases_on(self, grid: Grid) -> bool:
        return any(2 * self._top(a) > n for a, n in enumerate(grid.points))

    def _project(self, grid: Grid, device: torch.device) -> GridProjection:
        return lattice.exponentials(self.wavevectors, grid, device)

    def spectral(self, z: Tensor, grid: Grid) -> Tensor:
        if self.dim == 1 and not self._thinned:
            return self._contiguous(z, grid)
        return torch.unflatten(self.projection_on(grid, z.device)(z), -1, grid.spectral_shape)

    def _contiguous(self, z: Tensor, grid: Grid) -> Tensor:
        """For one dimension and all harmonics: amplitudes that alias onto adjacent coefficients are adjacent, so slices
        are enough."""
        n, scale = grid.points[0], 1 / math.sqrt(2 * grid.lengths[0])
        half, inner = n // 2, (n - 1) // 2  # inner: the largest harmonic with both a cosine and a sine
        kept = min(half, self.top) + 1
        out = z.new_empty((*z.shape[:-1], half + 1))
        torch.mul(z[..., :kept], scale, out=out[..., :kept])
        out[..., kept:] = 0
        constant = z[..., 0].real * math.sqrt(2)
        for centre in range(n, self.top + half, n):  # harmonics centre - m and centre + m alias onto -m and m
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


class Sine(Lattice):
    """prod_i sqrt(2/L_i) sin(k_i pi x_i/L_i), k_i = 1..J: J^d functions, zero on the boundary.

    A pair drives two neighbours along the last axis, k_d = 2m+1 and 2m+2. On N points k > N aliases onto -(2N - k).
    """

    name = "sine"

    def __init__(self, truncation: int, dim: int = 1) -> None:
        super().__init__(truncation, dim, lattice.positive_lattice(truncation, dim))

    @property
    def index(self) -> Tensor:
        number = (self._vectors > 0).all(-1).to(torch.int64).flatten()
        return (number.cumsum(0) * number).reshape(-1, 2)

    @property
    def modes(self) -> Tensor:
        k = self.wavevectors.clone()
        k[:, -1] = (k[:, -1] - 1) // 2
        return lattice.pack(k)

    def _kept(self, truncation: int) -> Tensor:
        return (self._vectors <= truncation).all(-1)

    def resolved_by(self, grid: Grid) -> bool:
        return all(self._top(a) < n for a, n in enumerate(grid.points))

    def aliases_on(self, grid: Grid) -> bool:
        return any(self._top(a) > n for a, n in enumerate(grid.points))

    def _project(self, grid: Grid, device: torch.device) -> GridProjection:
        return lattice.sines(self._vectors.reshape(-1, self.dim), grid, device)

    def spectral(self, z: Tensor, grid: Grid) -> Tensor:
        if self.dim == 1 and not self._thinned:
            return self._contiguous(z, grid)
        return torch.unflatten(self.projection_on(grid, z.device)(torch.view_as_real(z).flatten(-2)), -1, grid.points)

    def _contiguous(self, z: Tensor, grid: Grid) -> Tensor:
        """For one dimension and all sines: slices are enough."""
        n = grid.points[0]
        beta = torch.view_as_real(z).flatten(-2)
        out = beta.new_zeros((*z.shape[:-1], n))
        top = min(n - 1, self.functions)
        out[..., 1 : top + 1] = beta[..., :top]
        for centre in range(2 * n, self.functions + n, 2 * n):  # k = centre - m aliases onto -m, centre + m onto m
            low, high = max(1, centre - self.functions), min(n - 1, self.functions - centre)
            if low < n:
                out[..., low:] -= beta[..., centre - n : centre - low].flip(-1)
            if high >= 1:
                out[..., 1 : high + 1] += beta[..., centre : centre + high]
        return out.mul_(math.sqrt(2 / grid.lengths[0]))


class Haar(Basis):
    """1/sqrt(L), then 2^(d/2)/sqrt(L) psi(2^d x/L - i), d = 0, 1, .., i < 2^d, psi = 1 on [0,1/2), -1 on [1/2,1).

    J functions in this order. On a grid the cell that begins at a point gives its value; `projected` integrates the
    step function against the grid's modes exactly, for every J.
    """

    name = "haar"

    def __init__(self, truncation: int) -> None:
        self.functions = truncation
        self.pairs = (truncation + 1) // 2
        self.levels = max(0, (truncation - 1).bit_length())

    @property
    def index(self) -> Tensor:
        return _consecutive(self.pairs, self.functions)

    def _kept(self, truncation: int) -> Tensor:
        return self.index <= truncation

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
            # c_k = sinc(k/m) exp(-i pi k/m) (1/m) sum_c w_c exp(-2 pi i k c/m), of period m in k but for the factors
            full: Tensor = torch.fft.fft(cells, norm="forward")
            theta = math.pi * k.to(torch.float64) / m
            factor = torch.polar(torch.sinc(k.to(torch.float64) / m), -theta)
            out = full[..., k % m] * factor
            if grid.points[0] % 2 == 0:
                out[..., -1] = 0
            return out
        # b_k = 4/(k pi) sin(k pi/2m) sum_c w_c sin(k pi (c + 1/2)/m): a sine transform II through the odd extension
        odd: Tensor = torch.fft.fft(torch.cat((cells, -cells.flip(-1)), dim=-1))[..., k % (2 * m)]
        theta = math.pi * k.to(torch.float64) / (2 * m)
        sums = (odd * torch.polar(torch.full_like(theta, 0.5), math.pi / 2 - theta)).real
        scale = torch.where(k > 0, 4 * torch.sin(theta) / (math.pi * k.clamp(min=1)), torch.zeros_like(theta))
        return sums * scale


def _check_even(truncation: int) -> None:
    if truncation % 2:
        raise UserError(
            f"truncation J={truncation}: a Fourier expansion has the harmonics |k| <= J/2, so J is even; "
            f"try {truncation + 1}"
        )


def _consecutive(pairs: int, functions: int) -> Tensor:
    j = torch.arange(1, 2 * pairs + 1).reshape(pairs, 2)
    return torch.where(j <= functions, j, 0)
