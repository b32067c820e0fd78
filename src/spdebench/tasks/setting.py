"""The description of the data that a model is built for (`Setting`), and the inputs that it is given (`Batch`)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spdebench import spec
from spdebench.data.identity import check_seen
from spdebench.equations import Equation, identity
from spdebench.equations.inputs import Inputs
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.noise import UnseenNoise, Wiener
from spdebench.solvers.loop import to_stored


@dataclass(frozen=True)
class Setting:
    """Grid, frames t_0..t_T, inputs and (unless the data were imported) the equation of the data.

    ``grid`` and ``times`` are those of the arrays; with sub-sampling the grid and the steps of ``equation`` are finer.
    ``seen`` is the truncation K of the noise that a model is given; None: all of it.
    """

    grid: Grid
    times: tuple[float, ...]
    inputs: Inputs
    equation: Equation | None = None
    seen: int | None = None

    @property
    def dim(self) -> int:
        return self.grid.dim

    @property
    def frames(self) -> int:
        """Number of frames, including t_0."""
        return len(self.times)

    @property
    def dt(self) -> float:
        """Length of one interval between frames."""
        return self.times[1] - self.times[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """(T, X..) of one sample."""
        return (self.frames, *self.grid.points)

    @property
    def label(self) -> str:
        """The equation's name, for messages."""
        return self.equation.name if self.equation else "imported data"

    @property
    def partial(self) -> bool:
        """Whether some of the noise is not part of the input, so that the right output is a law."""
        return self.seen is not None and self.unseen().functions > 0

    def unseen(self, *, law: bool = False, seen: int | None = None) -> UnseenNoise:
        """The noise that is not given to a model, with unit variance for each basis function, or with its true ``law``.

        ``seen`` replaces the setting's own truncation.
        """
        known = self.seen if seen is None else seen
        if known is None or self.equation is None:
            raise UserError("all of the noise is given to the model; a law needs a task with seen=K")
        return _unseen(self.equation, self.grid, known, law)

    def to_dict(self) -> dict[str, Any]:
        seen = {} if self.seen is None else {"seen": self.seen}
        return {
            "grid": spec.to_dict(self.grid),
            "times": list(self.times),
            "inputs": self.inputs,
            "equation": None if self.equation is None else identity.to_dict(self.equation),
            **seen,
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Setting:
        g = values["grid"]
        grid = Grid(tuple(g["points"]), tuple(g["lower"]), tuple(g["upper"]), g["boundary"])
        equation = None if values["equation"] is None else identity.from_dict(values["equation"])
        return Setting(grid, tuple(values["times"]), values["inputs"], equation, values.get("seen"))


@functools.lru_cache(maxsize=32)
def _unseen(equation: Equation, grid: Grid, seen: int, law: bool) -> UnseenNoise:
    """The unseen noise of an equation at the points of a task's grid, as it would be stored."""
    check_seen(equation, seen)
    basis = equation.series()
    roots = equation.eigenvalue_roots() if law else torch.ones(basis.index.shape, dtype=torch.float64)
    projected, solving = equation.edition == "converged", equation.solving_grid
    at_points = not projected and (equation.strided or solving.points == equation.grid.points)
    if at_points or (equation.basis != "haar" and basis.resolved_by(grid)):
        return UnseenNoise(Wiener(basis, roots, grid), seen)  # the stored values are those of the series

    def stored(field: Tensor) -> Tensor:
        values = to_stored(field, False, equation)
        for axis, n, m in zip(grid.axes, equation.grid.points, grid.points, strict=True):
            values = torch.unflatten(values, axis, (m, n // m)).select(axis, 0)
        return values

    return UnseenNoise(Wiener(basis, roots, solving, projected), seen, stored)


@dataclass(frozen=True)
class Batch:
    """Inputs of B samples: u0 (B X..), dw (B T X..) with dw[:,0] = 0; sample b belongs to equations[source[b]]."""

    u0: Tensor
    dw: Tensor
    equations: tuple[Equation, ...] = ()
    source: Tensor | None = None

    def __len__(self) -> int:
        return len(self.dw)

    def to(self, device: torch.device | str) -> Batch:
        source = None if self.source is None else self.source.to(device)
        return Batch(self.u0.to(device), self.dw.to(device), self.equations, source)

    def repeated(self, times: int) -> Batch:
        """This batch ``times`` times in a row."""
        u0, dw = (x.repeat(times, *(1,) * (x.ndim - 1)) for x in (self.u0, self.dw))
        return Batch(u0, dw, self.equations, None if self.source is None else self.source.repeat(times))
