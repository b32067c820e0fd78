"""The authors' flat Parquet files: every column is one array in C order, with one row per value.

    variant   W and sol        columns            what to know
    1d        (N, X, T)        T X W sol          phi41, wave, kpz; X holds both ends of the interval
    kdv       (N, X, T)        T X W sol          as 1d, but the last x of sol is padding
    phi42     (N, T, X, Y)     T X Y W sol eps    eps is the truncation; X and Y are one period of the grid
    ns        (N, X, Y, T)     T W sol            W holds increments, and its last frame is padding

W is the path, W(t_k) = dw_1 + .. + dw_k, without sigma; only in ns is it the increment from frame k to frame k + 1. The
authors' readers count the distinct values of the coordinate columns, where a NaN would count as one, and reshape;
therefore our writer repeats each coordinate along the flat array. Our reader accepts both repeated and NaN-padded
coordinates.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spdebench.data.parquet import new_parquet
from spdebench.data.store import DENSEST
from spdebench.equations.base import MOST_VALUES
from spdebench.errors import UserError, first_line
from spdebench.spec import canonical_json, loads

ORIGIN = "spdebench.origin"
"""Metadata key of an exported file with the identity of the dataset that it was made from."""

BLOCK = 1 << 21  # values of a column held in memory at a time
_COORDINATES = 1 << 16  # a column with more distinct values than this is not a coordinate axis


@dataclass(frozen=True)
class Layout:
    """One variant of the flat file; ``axes`` is the order in the file, after the samples."""

    variant: str
    axes: str
    coordinates: str  # axes that have a column
    closed: bool = False  # both ends of a space axis are stored
    w_padding: str = ""  # axis along which the last entry of W is padding
    sol_padding: str = ""  # the same for sol
    increments: bool = False  # W holds increments instead of the path
    eps: bool = False

    @property
    def package_axes(self) -> str:
        """The axes in the order of this package: time first."""
        return "T" + self.axes.replace("T", "")

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.coordinates, "W", "sol", *(("eps",) if self.eps else ()))

    def to_file(self, array: np.ndarray) -> np.ndarray:
        """An array (N, T, X, ..) with its axes in the order of the file."""
        return array.transpose(0, *(1 + self.package_axes.index(a) for a in self.axes))

    def to_package_axes(self, array: np.ndarray) -> np.ndarray:
        """An array of the file with its axes in the order (N, T, X, ..)."""
        return array.transpose(0, *(1 + self.axes.index(a) for a in self.package_axes))

    def trim(self, array: np.ndarray, axis: str) -> np.ndarray:
        """An array (N, T, X, ..) without its last entry along the padded ``axis``; unchanged if that is empty."""
        keep = [slice(None), *(slice(None, -1 if a == axis else None) for a in self.package_axes)]
        return array[tuple(keep)]


LAYOUTS = {
    layout.variant: layout
    for layout in (
        Layout("1d", axes="XT", coordinates="TX", closed=True),
        Layout("kdv", axes="XT", coordinates="TX", closed=True, sol_padding="X"),
        Layout("phi42", axes="TXY", coordinates="TXY", eps=True),
        Layout("ns", axes="XYT", coordinates="T", w_padding="T", increments=True),
    )
}
_TAGS = (
    r"_(?P<equation>phi41|phi42|kdv|wave|kpz|navier|ns(?=e?_))",
    r"_(?P<task>u0_xi|xi_u0|xi)_",
    r"(?:_|kdv)(?P<noise>q|cyl)_",
    r"(?:_|sigma)(?P<sigma>01|1)_.*xi_",
    r"_(?P<renormalisation>reno|expl)_",
    r"_(?:trc|eps|j)?(?P<truncation>\d+)_(?P<samples>\d+)_$",
)


# --- plain arrays -------------------------------------------------------------------------------------------------
def write_flat(
    path: Path,
    layout: Layout,
    coordinates: Mapping[str, np.ndarray],
    blocks: Iterable[tuple[np.ndarray, np.ndarray]],
    *,
    eps: float | None = None,
    origin: Mapping[str, Any] | None = None,
) -> Path:
    """Write blocks of (W, sol), each (samples, T, X, ..) without padding, block by block; all or nothing."""
    types = {"W": pa.float32() if layout.increments else pa.float64(), "sol": pa.float32()}
    metadata = {ORIGIN: canonical_json(dict(origin))} if origin is not None else None
    schema = pa.schema([(c, types.get(c, pa.float64())) for c in layout.columns], metadata=metadata)
    names = [c for c in layout.columns if c not in ("W", "sol")]
    with new_parquet(path, schema, dictionary=names, fields=["W", "sol"]) as writer:
        for w, sol in blocks:
            writer.write_table(_table(schema, layout, coordinates, w, sol, eps), row_group_size=BLOCK)
    return path


def _table(
    schema: pa.Schema,
    layout: Layout,
    coordinates: Mapping[str, np.ndarray],
    w: np.ndarray,
    sol: np.ndarray,
    eps: float | None,
) -> pa.Table:
    """One block of (W, sol) as the rows of a flat file."""
    shape = tuple(map(max, w.shape, sol.shape))
    for name, array, padding in (("W", w, layout.w_padding), ("sol", sol, layout.sol_padding)):
        if layout.trim(np.empty(shape, dtype=bool), padding).shape != array.shape:
            raise UserError(
                f"{name} has the shape {array.shape}, which does not fit the other array in layout '{layout.variant}'"
            )
    sizes = dict(zip(layout.package_axes, shape[1:], strict=True))
    ordered = (shape[0], *(sizes[a] for a in layout.axes))
    values = {"W": _padded(w, shape), "sol": _padded(sol, shape)}
    columns = {name: layout.to_file(array).reshape(-1) for name, array in values.items()}
    for axis in layout.coordinates:
        if len(coordinates[axis]) != sizes[axis]:
            raise UserError(
                f"flat file: axis {axis} has {sizes[axis]} points, got {len(coordinates[axis])} coordinates for it"
            )
        along = [-1 if a == axis else 1 for a in layout.axes]
        columns[axis] = np.broadcast_to(np.reshape(coordinates[axis], along), ordered).reshape(-1)
    if layout.eps:
        columns["eps"] = np.full(math.prod(shape), eps)
    return pa.Table.from_arrays([pa.array(columns[f.name]).cast(f.type) for f in schema], schema=schema)


def _padded(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The array extended to this shape; new entries are NaN."""
    if array.shape == shape:
        return array
    out = np.full(shape, np.nan, dtype=array.dtype)
    out[tuple(slice(size) for size in array.shape)] = array
    return out


class Source:
    """An opened flat file: its columns, coordinates and shape, and its fields in blocks of whole samples."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            folder = " is a folder; give one of its files" if path.is_dir() else ""
            raise UserError(f"no such file: {path}{folder}")
        with self._reading():
            self._file = pq.ParquetFile(path, page_checksum_verification=True)
            self.columns = self._file.schema_arrow.names
            self.rows = int(self._file.metadata.num_rows)
            self._metadata = self._file.schema_arrow.metadata or {}
            if len(set(self.columns)) < len(self.columns):
                raise ValueError("a column stands twice")
            if self.rows > DENSEST * path.stat().st_size:
                raise ValueError(f"{self.rows} rows cannot lie in {path.stat().st_size} bytes")
        for name in set(self.columns) & {"T", "X", "Y", "W", "sol", "eps"}:
            kind = self._file.schema_arrow.field(name).type
            if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
                raise UserError(f"{path}: column {name} must hold numbers, it holds {kind}")
        self.require("T", "W", "sol")

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
            line = f"{self.path} is not a whole Parquet file ({first_line(error)}); fetch it again"
            raise UserError(line) from None

    def require(self, *names: str) -> None:
        if missing := [name for name in names if name not in self.columns]:
            found = ", ".join(self.columns[:8]) or "none"
            raise UserError(f"{self.path}: no column {', '.join(missing)}, which a published file has; found {found}")

    def origin(self) -> dict[str, Any] | None:
        """The identity of the dataset that `export_published` wrote into the file; None if there is none."""
        text = self._metadata.get(ORIGIN.encode())
        with self._reading():
            return None if text is None else loads(text)

    def eps(self) -> float | None:
        """The first value of the constant column."""
        if "eps" not in self.columns or not self.rows:
            return None
        with self._reading():
            value = next(self._file.iter_batches(batch_size=1, columns=["eps"])).column(0)[0].as_py()
        return None if value is None or not math.isfinite(value) else float(value)

    def coordinates(self, layout: Layout) -> dict[str, np.ndarray]:
        """Distinct values of each coordinate column that is there, NaN left out, in the order they appear."""
        self.require(*layout.coordinates)
        return {axis: self._distinct(axis) for axis in layout.package_axes if axis in self.columns}

    def _distinct(self, axis: str) -> np.ndarray:
        """The distinct finite values of a coordinate column; they must increase in equal steps."""
        seen: dict[float, None] = {}
        with self._reading():
            for batch in self._file.iter_batches(batch_size=1 << 18, columns=[axis]):
                values = pc.unique(batch.column(0)).to_numpy(zero_copy_only=False).astype(np.float64)
                seen.update(dict.fromkeys(values[np.isfinite(values)].tolist()))
                if len(seen) > _COORDINATES:
                    raise UserError(f"{self.path}: column {axis} has over {_COORDINATES} values, not coordinates")
        found = np.array(list(seen))
        steps = np.diff(found)
        if len(found) < 2 or steps.min() <= 0 or np.ptp(steps) > 1e-2 * steps.mean():
            raise UserError(
                f"{self.path}: column {axis} must hold evenly spaced, increasing values; it has {len(found)}"
            )
        return found

    def shape(self, layout: Layout, coordinates: Mapping[str, np.ndarray]) -> tuple[int, dict[str, int]]:
        """(n, points of each axis); n follows from the number of rows. Without columns X and Y the grid is square."""
        sizes = {axis: len(values) for axis, values in coordinates.items()}
        known = math.prod(sizes.values())
        if not self.rows or self.rows % known:
            text = " x ".join(f"{size} {axis}" for axis, size in sizes.items())
            raise UserError(
                f"{self.path}: {self.rows} rows are not a multiple of {text}; the file is truncated or lacks "
                "coordinates"
            )
        if absent := [axis for axis in layout.package_axes if axis not in sizes]:
            sizes |= dict.fromkeys(absent, self._side(self.rows // known))
        if math.prod(sizes.values()) > MOST_VALUES:
            raise UserError(f"{self.path}: a sample of {sizes} has more than {MOST_VALUES} values")
        return self.rows // math.prod(sizes.values()), sizes

    def _side(self, cells: int) -> int:
        """The points s per axis of a square grid with cells = n s^2.

        n is known from the file's name; otherwise s is 64 (as in the authors' reader) or 16 (as in their generator).
        """
        if samples := guess_tags(self.path.stem).get("samples"):
            side = math.isqrt(cells // samples)
            if samples * side * side == cells and side:
                return side
            raise UserError(
                f"{self.path}: {cells} values per frame are not {samples} square grids, as the file name says"
            )
        fits = [side for side in (64, 16) if cells % side**2 == 0]
        fits = [side for side in fits if cells == 1200 * side**2] or fits
        if len(fits) == 1:
            return fits[0]
        raise UserError(
            f"{self.path}: {cells} values per frame do not determine the grid; let the file name end in -J-n.parquet "
            "(n samples)"
        )

    def blocks(
        self, layout: Layout, sizes: Mapping[str, int], columns: Sequence[str] = ("W", "sol")
    ) -> Iterator[tuple[np.ndarray, ...]]:
        """The columns as (samples, T, X, ..) in float64, padding included; each block reuses the memory of the last."""
        shape = [sizes[axis] for axis in layout.axes]
        size = math.prod(shape)
        whole = size * min(max(1, BLOCK // size), self.rows // size)
        buffers = {name: np.empty(whole, dtype=np.float64) for name in columns}
        filled = 0
        with self._reading():
            for batch in self._file.iter_batches(batch_size=1 << 18, columns=list(columns)):
                taken = 0
                while taken < len(batch):
                    count = min(len(batch) - taken, whole - filled)
                    for name, buffer in buffers.items():
                        part = batch.column(name).slice(taken, count)
                        buffer[filled : filled + count] = part.to_numpy(zero_copy_only=False)
                    taken, filled = taken + count, filled + count
                    if filled == whole:
                        yield tuple(layout.to_package_axes(b.reshape(-1, *shape)) for b in buffers.values())
                        filled = 0
        if filled:
            yield tuple(layout.to_package_axes(b[:filled].reshape(-1, *shape)) for b in buffers.values())


def guess_tags(stem: str) -> dict[str, Any]:
    """The information in a file name: equation, task, noise, sigma, renormalisation, truncation, samples, as far as
    present."""
    text = "_" + re.sub(r"[^0-9a-z]+", "_", stem.lower()).strip("_") + "_"
    tags: dict[str, Any] = {}
    for pattern in _TAGS:
        if match := re.search(pattern, text):
            tags |= match.groupdict()
    meanings = {"ns": "nse", "navier": "nse", "xi_u0": "u0_xi", "q": "Q", "01": 0.1, "1": 1.0}
    numbers = {key: int(tags[key]) for key in ("truncation", "samples") if key in tags}
    return {key: meanings.get(value, value) for key, value in tags.items()} | numbers
