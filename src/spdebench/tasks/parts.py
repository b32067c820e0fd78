"""A part of a task (train, val or test): sub-sampled rows of one or more datasets, read when first used."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset

from spdebench.data import Dataset
from spdebench.display import Displayed, TableRows
from spdebench.engines import check_free_memory
from spdebench.equations import Equation
from spdebench.grids import Grid
from spdebench.tasks.setting import Batch

Rows = Tensor | slice
Array = TypeVar("Array", Tensor, np.ndarray)


class Part(Displayed, TorchDataset[dict[str, Tensor]]):
    """The rows ``rows[i]`` of ``datasets[i]``, one dataset after the other, at every k-th frame and point.

    The ``dw`` of skipped frames are summed, so that dw stays the increment over the interval that ends at its frame.
    They are read from the column ``noise``: dw, or dw_seen in a task that shows only a part of the noise. ``part[i]``
    is a dictionary of the tensors u0 (X..), dw, xi and u (T X..), for torch loaders.
    """

    def __init__(
        self,
        name: str,
        datasets: Sequence[Dataset],
        rows: Sequence[np.ndarray],
        *,
        every: int = 1,
        stride: int = 1,
        equations: tuple[Equation, ...] = (),
        noise: str = "dw",
    ) -> None:
        self.name, self.every, self.stride, self.equations, self.noise = name, every, stride, equations, noise
        self.datasets, self.rows = tuple(datasets), tuple(rows)
        first = self.datasets[0]
        self.grid: Grid = first.grid.with_points([n // stride for n in first.grid.points])
        self.times: tuple[float, ...] = tuple(float(t) for t in first.times[::every])
        self.reads = 0  # how often rows were read from the files

    def row(self) -> dict[str, Any]:
        """This part in one row of a table."""
        shape = "x".join(map(str, self.shape))
        return {"part": self.name, "samples": len(self), "T X..": shape, "every": self.every, "stride": self.stride}

    def overview(self) -> tuple[str, TableRows]:
        return f"Part of {', '.join(d.path.name for d in self.datasets)}", [self.row()]

    def __len__(self) -> int:
        return sum(len(rows) for rows in self.rows)

    @property
    def dt(self) -> float:
        return self.times[1] - self.times[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """(T, X..) of one sample."""
        return (len(self.times), *self.grid.points)

    @cached_property
    def source(self) -> Tensor:
        """The index of the dataset that each sample comes from."""
        return torch.cat([torch.full((len(rows),), i) for i, rows in enumerate(self.rows)])

    @cached_property
    def u(self) -> Tensor:
        """Solutions (N T X..)."""
        return self._read("u")

    @cached_property
    def dw(self) -> Tensor:
        """Increments (N T X..), dw[:,0] = 0."""
        return self._read(self.noise)

    @cached_property
    def u0(self) -> Tensor:
        """Initial data (N X..)."""
        return self._read("u0")

    def showing(self, noise: str) -> Part:
        """The same samples with the noise of another column of the files, dw or dw_seen."""
        every, stride, equations = self.every, self.stride, self.equations
        return Part(self.name, self.datasets, self.rows, every=every, stride=stride, equations=equations, noise=noise)

    def batch(self, rows: Rows | None = None) -> Batch:
        """The inputs of some samples, or of all."""
        if rows is None:
            rows = slice(None)
        return Batch(self.u0[rows], self.dw[rows], self.equations, self.source[rows])

    def thinned(self, u: Array) -> Array:
        """Stored solutions (.., T, X..) at the frames and points of this part."""
        kept: Any = (..., slice(None, None, self.every), *(slice(None, None, self.stride),) * self.grid.dim)
        out: Array = u[kept]
        return out

    def chunks(self) -> Iterator[tuple[Batch, Tensor]]:
        """Inputs and solutions of all samples, one row group of the files at a time; each call reads the files again.

        Samples of several datasets alternate, so that a reader who stops early has seen all of the datasets.
        """
        streams = [self._chunks_of(i) for i in range(len(self.datasets))]
        if len(streams) == 1:
            yield from streams[0]
            return
        for several in zip_longest(*streams):
            batches, solutions = zip(*(chunk for chunk in several if chunk is not None), strict=True)
            order = torch.cat([torch.arange(len(u)) for u in solutions]).argsort(stable=True)
            u0, dw, source = (
                torch.cat([getattr(batch, name) for batch in batches])[order] for name in ("u0", "dw", "source")
            )
            yield Batch(u0, dw, self.equations, source), torch.cat(solutions)[order]

    def _chunks_of(self, i: int) -> Iterator[tuple[Batch, Tensor]]:
        """`chunks` of the samples of one dataset."""
        data = self.datasets[i]
        kept = np.zeros(len(data), dtype=bool)
        kept[self.rows[i]] = True
        columns = (data.row_groups(column) for column in ("u0", self.noise, "u"))
        for (start, u0), (_, dw), (_, u) in zip(*columns, strict=True):
            chosen = kept[start : start + len(u)]
            if chosen.any():
                parts = ((u0, "u0"), (dw, self.noise), (u, "u"))
                values = [self._thin(torch.from_numpy(array[chosen]), column) for array, column in parts]
                source = torch.full((len(values[0]),), i)
                yield Batch(values[0], values[1], self.equations, source), values[2].contiguous()

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        dw = self.dw[index]
        return {"u0": self.u0[index], "dw": dw, "xi": dw / self.dt, "u": self.u[index]}

    # --- reading --------------------------------------------------------------------------------------------------
    def _read(self, column: str) -> Tensor:
        """A column of all samples, at the frames and points of this part."""
        self.reads += 1
        shape = self.shape[1:] if column == "u0" else self.shape
        what = f"the column {column} of {len(self)} samples"
        check_free_memory(4 * len(self) * math.prod(shape), what, "use n= for fewer samples")
        out = torch.empty((len(self), *shape))
        first = 0
        for data, rows in zip(self.datasets, self.rows, strict=True):
            place = np.empty(len(data), dtype=np.int64)
            place.fill(-1)
            place[rows] = np.arange(first, first + len(rows))
            first += len(rows)
            for start, values in data.row_groups(column):
                chosen = place[start : start + len(values)]
                kept = chosen >= 0
                if kept.any():
                    out[torch.from_numpy(chosen[kept])] = self._thin(torch.from_numpy(values[kept]), column)
        return out

    def _thin(self, values: Tensor, column: str) -> Tensor:
        """The values of a column at the frames and points of this part; increments are summed over skipped frames."""
        if column == self.noise and self.every > 1:
            total = values[:, 1:].unflatten(1, (-1, self.every)).sum(2)
            values = torch.cat([values[:, :1], total], dim=1)
        elif column == "u":
            return self.thinned(values)
        if self.stride > 1:
            for axis in range(values.ndim - self.grid.dim, values.ndim):
                values = values.index_select(axis, torch.arange(0, values.shape[axis], self.stride))
        return values
