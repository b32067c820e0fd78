"""The description of the data that a model is built for (`Setting`), and the inputs that it is given (`Batch`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spdebench import spec
from spdebench.equations import Equation, identity
from spdebench.equations.inputs import Inputs
from spdebench.grids import Grid


@dataclass(frozen=True)
class Setting:
    """Grid, frames t_0..t_T, inputs and (unless the data were imported) the equation of the data.

    ``grid`` and ``times`` are those of the arrays; with sub-sampling the grid and the steps of ``equation`` are finer.
    """

    grid: Grid
    times: tuple[float, ...]
    inputs: Inputs
    equation: Equation | None = None

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

    def to_dict(self) -> dict[str, Any]:
        return {
            "grid": spec.to_dict(self.grid),
            "times": list(self.times),
            "inputs": self.inputs,
            "equation": None if self.equation is None else identity.to_dict(self.equation),
        }

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Setting:
        g = values["grid"]
        grid = Grid(tuple(g["points"]), tuple(g["lower"]), tuple(g["upper"]), g["boundary"])
        equation = None if values["equation"] is None else identity.from_dict(values["equation"])
        return Setting(grid, tuple(values["times"]), values["inputs"], equation)


@dataclass(frozen=True)
class Batch:
    """Inputs of B samples: u0 (B X..), dw (B T X..) with dw[:,0] = 0; sample b is of equations[source[b]]."""

    u0: Tensor
    dw: Tensor
    equations: tuple[Equation, ...] = ()
    source: Tensor | None = None

    def __len__(self) -> int:
        return len(self.dw)

    def to(self, device: torch.device | str) -> Batch:
        source = None if self.source is None else self.source.to(device)
        return Batch(self.u0.to(device), self.dw.to(device), self.equations, source)
