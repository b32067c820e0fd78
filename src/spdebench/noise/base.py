"""The base class of orthonormal bases of L^2 of a box.

A basis assigns its real functions phi_q to the pairs (a, b) of normal numbers of the stream: `index` is the number
j = 1, 2, .. of the function that each of the two numbers multiplies (0: none), and `modes` the number of the pair in
the stream. The latter does not depend on the truncation, so that a smaller J is a projection of a larger one.
`spectral` and `physical` map the pairs, already multiplied by the square roots of the eigenvalues, to coefficients or
values of the series on a grid.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from spdebench.errors import UserError
from spdebench.grids import Grid


class Basis(ABC):
    """The first functions of an orthonormal basis on a box of ``dim`` dimensions, up to a truncation J."""

    name: str
    dim: int = 1
    functions: int  # the number of real functions in use
    pairs: int  # the number of pairs of normal numbers that a step needs

    @property
    @abstractmethod
    def index(self) -> Tensor:
        """The number j of the function that each normal number of a pair multiplies, 0 for none: (pairs, 2)."""

    @property
    def modes(self) -> Tensor:
        """The number of each pair in the stream: (pairs,), int64; in one dimension 0, 1, 2, ..."""
        return torch.arange(self.pairs)

    def kept_by(self, truncation: int) -> Tensor:
        """Whether a smaller truncation K keeps each function: (pairs, 2), bool; K = 0 keeps none."""
        if truncation < 0:
            raise UserError(f"a truncation must not be negative, got {truncation}")
        return (self.index > 0) & (self._kept(truncation) if truncation else torch.tensor(False))

    @abstractmethod
    def _kept(self, truncation: int) -> Tensor:
        """`kept_by` for a positive truncation; entries without a function may have any value."""

    @abstractmethod
    def resolved_by(self, grid: Grid) -> bool:
        """Whether all functions are distinct on the grid, so that evaluating the series there does not alias."""

    def aliases_on(self, grid: Grid) -> bool:
        """Whether two functions that do not vanish at the grid points agree there (aliasing)."""
        return not self.resolved_by(grid)

    @abstractmethod
    def spectral(self, z: Tensor, grid: Grid) -> Tensor:
        """Coefficients of the series evaluated at the grid points: (.., pairs) -> (.., spectrum)."""

    def physical(self, z: Tensor, grid: Grid) -> Tensor:
        """The series at the grid points: (.., pairs) -> (.., points)."""
        return grid.inverse(self.spectral(z, grid))

    def projected(self, z: Tensor, grid: Grid) -> Tensor:
        """Coefficients of the L^2 projection of the series onto the grid's modes: (.., pairs) -> (.., spectrum)."""
        if not self.resolved_by(grid):
            raise UserError(
                f"{self.name} noise with {self.functions} functions is not resolved by {grid.points[0]} points per axis"
            )
        return self.spectral(z, grid)
