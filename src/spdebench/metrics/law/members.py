"""Ensembles of fields, ``N m T X [Y Z]`` (inputs, members, frames, space): checked once and read in blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.metrics.fields import CHUNK_BYTES, as_array, time_step

COPIES = 6
"""About how many arrays of the size of one block the scores need at the same time."""


class MembersInBlocks(ABC):
    """Members of a law, ``N m T X [Y Z]``, that are drawn or read when a block of inputs is needed, each block once."""

    shape: tuple[int, ...]

    @abstractmethod
    def read(self, inputs: slice) -> Tensor:
        """The members of some inputs: (n, m, T, X..)."""


class Ensembles:
    """Predicted members X and true members Y for the same inputs; frames after t_0 are scored.

    Both may be NumPy arrays, memory maps, tensors or `MembersInBlocks`. The scores are computed on the device of the
    prediction if that is a tensor, else on that of the truth, or on ``device``.
    """

    def __init__(
        self,
        prediction: Any,
        truth: Any,
        grid: Grid,
        *,
        has_t0: bool = True,
        times: Sequence[float] | np.ndarray | Tensor | None = None,
        chunk_bytes: int | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        self._x, self._y = (
            values if isinstance(values, MembersInBlocks) else as_array(values, label)
            for values, label in ((prediction, "prediction"), (truth, "truth"))
        )
        x, y = tuple(self._x.shape), tuple(self._y.shape)
        self._check(x, y, grid, has_t0)
        self.grid, self.first = grid, int(has_t0)
        self.inputs, self.predicted, self.true = x[0], x[1], y[1]
        self.frames, self.steps, self.space = y[2], y[2] - self.first, int(np.prod(grid.points))
        self.dt, self.unit_time = time_step(times, self.frames, self.steps)
        on = next((a.device for a in (self._x, self._y) if isinstance(a, Tensor)), torch.device("cpu"))
        self.device = torch.device(device) if device is not None else on
        self.chunk_bytes = chunk_bytes or CHUNK_BYTES[self.device.type]

    @staticmethod
    def _check(x: tuple[int, ...], y: tuple[int, ...], grid: Grid, has_t0: bool) -> None:
        """Refuse arrays that are not members of fields on this grid for the same inputs."""
        layout = "N m T " + " ".join("XYZ"[: grid.dim])
        for label, shape in (("prediction", x), ("truth", y)):
            if len(shape) != 3 + grid.dim or 0 in shape:
                raise UserError(f"{label}: expected members of fields ({layout}), got shape {shape}")
            if shape[3:] != grid.points:
                raise UserError(f"{label} has {shape[3:]} space points, the grid has {grid.points}; pass its grid")
        if x[0] != y[0] or x[2:] != y[2:]:
            raise UserError(f"prediction has shape {x}, truth {y}; only the number of members may differ ({layout})")
        if x[0] < 3:
            raise UserError(f"at least 3 inputs are needed to score a law, got {x[0]}")
        if has_t0 and y[2] < 2:
            raise UserError("the arrays contain only the frame t_0, which is not scored; pass has_t0=False")

    @property
    def cell(self) -> float:
        """The volume that belongs to one grid point."""
        return float(np.prod(self.grid.spacing))

    def blocks(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Blocks of inputs: the slice, X as ``(n, T, m, D)`` and Y as ``(n, T, M, D)`` in float64, D points."""
        members = self.predicted + self.true
        pairs = (self.predicted + self.true) ** 2 * self.steps
        each = 8 * COPIES * (members * self.frames * self.space + pairs)
        size = max(1, self.chunk_bytes // each)
        for start in range(0, self.inputs, size):
            where = slice(start, min(start + size, self.inputs))
            yield where, self._read(self._x, where), self._read(self._y, where)

    def _read(self, array: np.ndarray | Tensor | MembersInBlocks, where: slice) -> Tensor:
        """The scored frames of the members of some inputs: (n, T, m, D), float64."""
        if isinstance(array, MembersInBlocks):
            array, where = array.read(where), slice(None)
        piece = array[where, :, self.first :]
        values = piece if isinstance(piece, Tensor) else torch.from_numpy(np.array(piece))
        return values.to(self.device, torch.float64).flatten(3).transpose(1, 2).contiguous()
