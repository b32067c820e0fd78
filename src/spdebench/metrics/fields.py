"""The prediction and the truth: checked once and then read in blocks.

Arrays are ``N T X [Y Z]``: samples, frames, space. Frames are t_0..t_T (``has_t0``) or t_1..t_T. Shapes are never
broadcast. Memory-mapped arrays are read block by block and may be larger than memory. Results are written into tables
that are allocated at the start, because small arrays allocated between large temporary ones would fragment the heap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spdebench.errors import UserError
from spdebench.grids import Grid

CHUNK_BYTES = {"cpu": 32 << 20, "cuda": 1 << 30}
"""Approximate working memory of one block: on a CPU near the size of its cache, on a GPU enough for few launches."""
COPIES = 8  # arrays of the size of a block of samples that exist at the same time (fields, spectra, squares)
CONSTANT = 1e-6  # a column counts as constant if its std over samples is below this fraction of max|u|


class Pair:
    """Prediction V and truth U on one grid. Computations use float64 if one of the arrays does, otherwise float32."""

    def __init__(
        self,
        prediction: Any,
        truth: Any,
        grid: Grid,
        *,
        has_t0: bool = True,
        times: Sequence[float] | np.ndarray | Tensor | None = None,
        chunk_bytes: int | None = None,
    ) -> None:
        v, u = as_array(prediction, "prediction"), as_array(truth, "truth")
        if not isinstance(grid, Grid):
            raise UserError(f"grid: expected a Grid, such as dataset.grid or Grid.unit(64); got {type(grid).__name__}")
        check_shapes(tuple(v.shape), tuple(u.shape), grid, has_t0)
        self.grid, self.has_t0 = grid, has_t0
        self.samples_count, self.frames_count = u.shape[0], u.shape[1]
        self.first = 1 if has_t0 else 0  # the first frame that is scored
        self.steps = self.frames_count - self.first
        self.space = int(np.prod(grid.points))
        self.dt, self.unit_time = time_step(times, self.frames_count, self.steps)
        flat = (self.samples_count, self.frames_count, self.space)
        self._v, self._u = v.reshape(flat), u.reshape(flat)
        self.device = next((a.device for a in (v, u) if isinstance(a, Tensor)), torch.device("cpu"))
        self.chunk_bytes = CHUNK_BYTES.get(self.device.type, 32 << 20) if chunk_bytes is None else chunk_bytes
        if self.chunk_bytes < 1:
            raise UserError(f"chunk_bytes must be positive, got {chunk_bytes}")
        self.dtype = torch.float64 if max(v.dtype.itemsize, u.dtype.itemsize) > 4 else torch.float32
        self.memo: dict[str, Any] = {}  # intermediate results that several metrics use
        self._scan()

    # --- facts from one pass over the arrays -------------------------------------------------------------------------
    def _scan(self) -> None:
        """Find which samples are not finite, and max|V| and max|U| over the scored frames."""
        bad, bad_t0 = np.zeros(self.samples_count, bool), np.zeros(self.samples_count, bool)
        top_v = top_u = 0.0
        for where, v, u in self.samples(t0=True):
            size_u, size_v = (torch.maximum(f.amax(2), -f.amin(2)) for f in (u.flatten(2), v.flatten(2)))
            if not bool(torch.isfinite(size_u).all()):  # amax and amin keep NaN and inf
                at = where.start + int((~torch.isfinite(size_u).all(1)).nonzero()[0, 0])
                raise UserError(f"the truth is not finite in sample {at}; it must be finite: generate it again")
            fine = torch.isfinite(size_v)
            scored = fine[:, self.first :].all(1)
            bad[where], bad_t0[where] = ~scored.cpu().numpy(), ~fine.all(1).cpu().numpy()
            if bool(scored.any()):
                top_v = max(top_v, float(size_v[scored, self.first :].max()))
            top_u = max(top_u, float(size_u[:, self.first :].max()))
        self.nonfinite, self.nonfinite_with_t0 = bad, bad_t0
        self.scale_prediction, self.scale_truth = top_v, top_u

    @property
    def finite(self) -> bool:
        """Whether the scored frames of the prediction contain no NaN or inf."""
        return not self.nonfinite.any()

    @cached_property
    def mean_truth(self) -> Tensor:
        """mean_n U at all frames, ``(frames, D)``, float64."""
        total = torch.zeros(self.frames_count, self.space, dtype=torch.float64, device=self.device)
        for _, _, u in self.samples(t0=True, prediction=False):
            total += u.flatten(2).sum(0, dtype=torch.float64)
        return total / self.samples_count

    @cached_property
    def spread_truth(self) -> float:
        """Standard deviation of U about its mean field over samples, scored frames and space; 0 if U is constant."""
        total = 0.0
        for _, _, u in self.samples(prediction=False):
            away = u.flatten(2) - self.mean_truth[self.first :].to(u.dtype)
            total += float(away.square().sum(dtype=torch.float64))
        spread = (total / (self.samples_count * self.steps * self.space)) ** 0.5
        return spread if spread > CONSTANT * self.scale_truth else 0.0

    @cached_property
    def squares(self) -> tuple[np.ndarray, np.ndarray]:
        """sum_i |V - U|^2 and sum_i |U|^2 for every sample and scored frame."""
        return self.tabulate(lambda field: torch.linalg.vector_norm(field, dim=2, dtype=torch.float64).square())

    def tabulate(self, measure: Callable[[Tensor], Tensor]) -> tuple[np.ndarray, np.ndarray]:
        """``measure``, fields ``(n, T, D)`` -> ``(n, T)``, of V - U and of U: two float64 tables; NaN becomes inf."""
        error, size = np.zeros((2, self.samples_count, self.steps))
        for where, v, u in self.samples():
            error[where] = measure((v - u).flatten(2)).cpu().numpy()
            size[where] = measure(u.flatten(2)).cpu().numpy()
        return np.nan_to_num(error, nan=np.inf, posinf=np.inf), size

    # --- reading ----------------------------------------------------------------------------------------------------
    def samples(self, *, t0: bool = False, prediction: bool = True) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Blocks of samples: the slice, V and U as ``(n, T, *points)``. Without ``prediction`` V is U."""
        first = 0 if t0 else self.first
        size = max(1, self.chunk_bytes // (COPIES * self.frames_count * self.space * self.dtype.itemsize))
        shape = (-1, self.frames_count - first, *self.grid.points)
        for start in range(0, self.samples_count, size):
            where = slice(start, min(start + size, self.samples_count))
            u = self._read(self._u, (where, slice(first, None))).reshape(shape)
            v = self._read(self._v, (where, slice(first, None))).reshape(shape) if prediction else u
            yield where, v, u

    def points(self, bytes_each: int = 0, *, t0: bool = False) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Blocks of space points: the slice, V and U as ``(points, T, N)``.

        ``bytes_each`` is the memory that the caller needs for each point in addition to the fields.
        """
        first = 0 if t0 else self.first
        each = 2 * self.samples_count * self.frames_count * self.dtype.itemsize + bytes_each
        size = max(1, self.chunk_bytes // each)
        for start in range(0, self.space, size):
            where = slice(start, min(start + size, self.space))
            index = (slice(None), slice(first, None), where)
            v, u = self._read(self._v, index), self._read(self._u, index)
            yield where, v.permute(2, 1, 0).contiguous(), u.permute(2, 1, 0).contiguous()

    def frames(self, bytes_each: int, subset: np.ndarray | None = None) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Blocks of scored frames at all points or a ``subset``: the slice, V and U as ``(frames, points, N)``.

        Slices count from the first scored frame; ``bytes_each`` is the memory that the caller needs for each frame.
        """
        size = max(1, self.chunk_bytes // bytes_each)
        for start in range(0, self.steps, size):
            where = slice(start, min(start + size, self.steps))
            index = (slice(None), slice(where.start + self.first, where.stop + self.first))
            v, u = (self._read(a, index, subset) for a in (self._v, self._u))
            yield where, v.permute(1, 2, 0).contiguous(), u.permute(1, 2, 0).contiguous()

    def frame_zero(self) -> tuple[Tensor, Tensor]:
        """V and U at t_0, ``(N, D)``."""
        return self._read(self._v, (slice(None), 0)), self._read(self._u, (slice(None), 0))

    def _read(self, array: Any, index: tuple[Any, ...], subset: np.ndarray | None = None) -> Tensor:
        """A part of one of the arrays (at a ``subset`` of points) as a tensor in the working precision."""
        piece = array[index]
        if isinstance(piece, Tensor):
            picked = piece if subset is None else piece[..., torch.from_numpy(subset).to(piece.device)]
            return picked.to(self.device, self.dtype)
        if subset is not None:
            piece = piece[..., subset]
        kind = np.float64 if self.dtype == torch.float64 else np.float32
        return torch.from_numpy(np.require(piece, dtype=kind, requirements=["W"])).to(self.device)


def as_array(values: Any, label: str) -> np.ndarray | Tensor:
    """A tensor or NumPy array of real numbers (a memory map stays one); raises `UserError` for anything else."""
    if isinstance(values, Tensor):
        array: Any = values.detach()
        real = not array.is_complex()
        if real and array.dtype not in (torch.float32, torch.float64):
            array = array.to(torch.float32 if array.is_floating_point() else torch.float64)
    else:
        array = np.asarray(values)
        real = array.dtype.kind in "fiub"
        if array.dtype.kind in "iub":
            array = array.astype(np.float64)
        if any(stride < 0 for stride in array.strides):
            array = np.ascontiguousarray(array)
    if not real:
        raise UserError(f"{label}: expected real numbers, got {array.dtype}; pass the field itself, not its spectrum")
    out: np.ndarray | Tensor = array
    return out


def check_shapes(v: tuple[int, ...], u: tuple[int, ...], grid: Grid, has_t0: bool) -> None:
    """Raise `UserError` unless both arrays are ``N T X [Y Z]`` on ``grid``, of one shape, with a frame to score."""
    layout = "N T " + " ".join("XYZ"[: grid.dim])
    if v != u:
        raise UserError(f"prediction has shape {v}, truth {u}; both must have the same shape ({layout})")
    if len(u) != 2 + grid.dim:
        raise UserError(f"expected arrays ({layout}) on a grid of {grid.dim} space dimension(s), got shape {u}")
    if 0 in u:
        raise UserError(f"the arrays are empty, shape {u}; expected at least 3 samples and 1 frame")
    if u[2:] != grid.points:
        longer = tuple(n + 1 for n in grid.points)
        hint = "drop the duplicate end point" if u[2:] == longer else "pass the grid of the arrays"
        raise UserError(f"the arrays have {u[2:]} space points, the grid has {grid.points}; {hint}")
    if u[0] < 3:
        raise UserError(f"at least 3 samples are needed to score an ensemble, got {u[0]}")
    if has_t0 and u[1] < 2:
        raise UserError(
            "the arrays contain only the frame t_0, which is not scored; pass has_t0=False if that frame is t_1"
        )


def time_step(times: Any, frames: int, steps: int) -> tuple[float, bool]:
    """dt of uniform times, one per frame; without times t_0..t_T fill [0, 1]. The flag is True if times is None."""
    if times is None:
        return 1.0 / steps, True
    values = np.asarray(times.cpu() if isinstance(times, Tensor) else times, dtype=np.float64)
    if values.shape != (frames,):
        raise UserError(f"times: expected {frames} values, one per frame of the arrays, got shape {values.shape}")
    if frames < 2:
        raise UserError("times: one frame gives no time step; omit times or pass t_0 too")
    gaps = np.diff(values)
    if not (gaps > 0).all() or np.ptp(gaps) > 1e-3 * gaps.mean():
        raise UserError("times: expected increasing values with a uniform step; resample the arrays to uniform times")
    return float((values[-1] - values[0]) / (frames - 1)), False
