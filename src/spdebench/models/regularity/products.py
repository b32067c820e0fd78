"""Products of trees, with derivatives and with the velocity that belongs to a vorticity.

    tau tau' ..,   d^m tau,   d(tau tau'),   v(tau).grad tau',  v = (d_y, -d_x) (-Laplacian)^-1 tau  (Biot-Savart)

Derivatives have the symbols of the scheme that generated the data (central differences if it has them) or, with the
exact kernel, those of the continuous operators. On a Dirichlet grid a transport term is computed for the odd extension
to the doubled box, as in `NSE`. The authors' code fills its Biot-Savart matrix with a constant and does not use it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from spdebench.equations import Equation
from spdebench.grids import Grid
from spdebench.models.regularity.schemes import symbol_on
from spdebench.models.regularity.trees import Factor, Tree

Fields = dict[Tree, Tensor]
"""The field of each tree, (B, T, X..) or a shape that broadcasts to it."""


class Products(nn.Module):
    """Products on one grid; with ``differences`` derivatives are central differences."""

    slopes: Tensor
    stream: Tensor
    gradient: Tensor

    def __init__(self, equation: Equation, grid: Grid, *, differences: bool) -> None:
        super().__init__()
        self.grid, self.box = grid, grid
        terms = [m for m in (equation.rule.monomials if equation.rule else ()) if m.coefficient]
        orders = max((max(len(m.powers) - 1, int(m.form == "flux")) for m in terms), default=0)
        if any(m.form == "transport" for m in terms):
            if not grid.periodic:
                upper = tuple(a + 2 * length for a, length in zip(grid.lower, grid.lengths, strict=True))
                self.box = Grid(tuple(2 * n for n in grid.points), grid.lower, upper)
            along = torch.stack([self.box.derivative(axis).expand(self.box.spectral_shape) for axis in (0, 1)])
            square = -self.box.laplacian()
            inverse = torch.where(square > 0, 1 / square.clamp(min=1e-9), 0.0)
            self._keep("gradient", along)
            self._keep("stream", torch.stack((along[1] * inverse, -along[0] * inverse)))
        elif orders:
            slope = grid.derivative(0)
            if differences:
                slope = symbol_on(grid, equation, lambda g: g.derivative(0, difference=True))
            self._keep("slopes", torch.stack([slope**m for m in range(orders + 1)]))

    def _keep(self, name: str, symbol: Tensor) -> None:
        """Register a symbol as a buffer."""
        self.register_buffer(name, symbol.to(torch.complex64), persistent=False)

    def forward(self, trees: Sequence[Tree], fields: Fields) -> Tensor:
        """The products under the integrals of ``trees``, without xi: (trees, B, T, X..)."""
        seen: dict[tuple[str | int, Tree], Tensor] = {}  # factors that several products share
        products = (self._product(t, fields, seen) for t in trees)
        return torch.stack(torch.broadcast_tensors(*products))

    def _product(self, tree: Tree, fields: Fields, seen: dict[tuple[str | int, Tree], Tensor]) -> Tensor:
        """The product under the integral of one tree."""
        if tree.form == "transport":
            first, second = (f.tree for f in tree.factors)
            return self._transport(first, second, fields, seen)
        parts = [self._factor(f, fields, seen) for f in tree.factors]
        field = math.prod(parts[1:], start=parts[0])
        return self._slope(field, 1) if tree.form == "flux" else field

    def _factor(self, factor: Factor, fields: Fields, seen: dict[tuple[str | int, Tree], Tensor]) -> Tensor:
        """The field of one factor: that of a tree, or a derivative of it."""
        if factor.order == 0:
            return fields[factor.tree]
        key = (factor.order, factor.tree)
        if key not in seen:
            seen[key] = self._slope(fields[factor.tree], factor.order)
        return seen[key]

    def _slope(self, field: Tensor, order: int) -> Tensor:
        """The derivative of this order in x."""
        return self.grid.inverse(self.grid.transform(field) * self.slopes[order])

    def _transport(
        self, first: Tree, second: Tree, fields: Fields, seen: dict[tuple[str | int, Tree], Tensor]
    ) -> Tensor:
        """v(first).grad second; the axis of vector components is before the space axes."""
        for name, tree in (("stream", first), ("gradient", second)):
            if (name, tree) not in seen:
                c = self.box.transform(_odd(fields[tree], self.grid)).unsqueeze(-3)
                values = self.box.inverse(c * getattr(self, name))
                seen[name, tree] = values[..., : self.grid.points[0], : self.grid.points[1]]
        return (seen["stream", first] * seen["gradient", second]).sum(-3)


def _odd(field: Tensor, grid: Grid) -> Tensor:
    """The odd extension of a field on a Dirichlet grid to the doubled box; a periodic field is unchanged."""
    if grid.periodic:
        return field
    for axis in grid.axes:  # the reflected part is f_0 = 0, -f_{N-1}, .., -f_1
        field = torch.cat((field, -field.flip(axis).roll(1, axis)), axis)
    return field
