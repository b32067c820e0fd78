"""Fourier and sine functions in any dimension, and the lookup of a basis by its name.

The functions belong to wave vectors (`Lattice.function_wavevectors`), and the number of a pair in the stream is a
function of its wave vector. A series costs O(functions + N^d log N) on a grid.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod

import torch
from torch import Tensor

from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.noise import lattice
from spdebench.noise.base import Basis
from spdebench.noise.haar import Haar
from spdebench.noise.lattice import GridProjection


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
    """A basis whose functions belong to wave vectors; `keeping` restricts it to some of its pairs."""

    _vectors: Tensor  # (pairs, 2, dim); the zero vector marks an absent function (and the constant)

    def __init__(self, truncation: int, dim: int, vectors: Tensor) -> None:
        self.truncation, self.dim, self._vectors = truncation, dim, vectors
        self._thinned = False  # whether `keeping` has left out pairs
        self._count()

    def _count(self) -> None:
        """Set what depends on the wave vectors."""
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
        """The integer wave vector of the function of each normal number of a pair: (pairs, 2, dim)."""
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
    def _project(self, grid: Grid, device: torch.device) -> GridProjection:
        """Compute `projection_on`."""

    def _top(self, axis: int) -> int:
        """The largest |k_i| along an axis."""
        return int(self._vectors[..., axis].abs().max()) if self.pairs else 0


class Fourier(Lattice):
    """1/sqrt(V), sqrt(2/V) cos(kappa.x), sqrt(2/V) sin(kappa.x), kappa_i = 2 pi k_i/L_i: (J+1)^d functions, periodic.

    The basis has one of k and -k for all |k_i| <= J/2. The pair (a, b) of k makes the coefficient
    c_k = (a + ib)/sqrt(2V) of exp(i kappa.x). On N points the mode k agrees with k mod N. At Nyquist, where k and -k
    agree at the points, the grid has sqrt(2/V) a cos(kappa.x): the cosine with its full weight (variance 2/V, so that
    in one dimension Var dW/dt = (J+1)/L holds for J = N too) and nothing of the sine.
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
        """`spectral` in one dimension with all harmonics, by slices, because neighbours alias onto neighbours."""
        n, scale = grid.points[0], 1 / math.sqrt(2 * grid.lengths[0])
        half, inner = n // 2, (n - 1) // 2  # inner: the largest harmonic with both a cosine and a sine
        kept = min(half, self.top) + 1
        out = z.new_empty((*z.shape[:-1], half + 1))
        torch.mul(z[..., :kept], scale, out=out[..., :kept])
        out[..., kept:] = 0
        constant = z[..., 0].real * math.sqrt(2)
        for centre in range(n, self.top + half + 1, n):  # harmonics centre - m and centre + m alias onto -m and m
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

    A pair belongs to two neighbours along the last axis, k_d = 2m+1 and 2m+2. On N points k > N aliases onto -(2N - k).
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
        """`spectral` in one dimension with all sines, by slices."""
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


def _check_even(truncation: int) -> None:
    """Refuse an odd truncation of a Fourier basis."""
    if truncation % 2:
        raise UserError(
            f"truncation J={truncation}: a Fourier expansion has the harmonics |k| <= J/2, so J is even; "
            f"try {truncation + 1}"
        )
