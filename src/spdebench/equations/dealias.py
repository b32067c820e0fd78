"""Squares of fields on Fourier coefficients, de-aliased by the 3/2 rule."""

from __future__ import annotations

from torch import Tensor

from spdebench.equations.base import Map
from spdebench.grids import Grid


def dealiased_square(grid: Grid) -> Map:
    """The map from the coefficients of u to those of u^2 on a one-dimensional ``grid``, without aliasing (Galerkin).

    The square is taken at the points of a grid 3/2 times as fine and cut back to the modes of ``grid``. The map returns
    a new tensor, which the caller may change in place.
    """
    fine = grid.with_points(3 * grid.points[0] // 2)

    def square(c: Tensor) -> Tensor:
        u = fine.inverse(grid.resize(c, fine))
        return fine.resize(fine.transform(u.square_()), grid)

    return square
