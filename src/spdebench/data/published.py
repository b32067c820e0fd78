"""The authors' flat Parquet files: every column is one array in C order, and every value has a row of its own.

    variant   W and sol        columns            what to know
    1d        (N, X, T)        T X W sol          phi41, wave, kpz; X holds both ends of the interval
    kdv       (N, X, T)        T X W sol          as 1d, but the last x of sol is padding
    phi42     (N, T, X, Y)     T X Y W sol eps    eps is the truncation; X and Y are one period of the grid
    ns        (N, X, Y, T)     T W sol            W holds increments, and its last frame is padding

W is the path, W(t_k) = dw_1 + .. + dw_k, without sigma; only in ns is it the increment from frame k to frame k + 1. The
authors' readers count the distinct values of the coordinate columns, where a NaN would count as one, and reshape: so
the writer repeats each coordinate along the flat array. The reader takes repeated and NaN-padded coordinates alike.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spdebench.data.generate import check_folder
from spdebench.data.identity import LAYOUT
from spdebench.data.store import Dataset, Writer, made_with, open_dataset
from spdebench.errors import UserError, unknown
from spdebench.grids import Boundary, Grid
from spdebench.spec import canonical_json

ORIGIN = "spdebench.origin"
"""Metadata key under which an exported file carries the identity of the dataset it was made from."""

_NOTE = (
    "frame k of W in the file is the noise that drives u from frame k to frame k + 1, and stands here as dw[k + 1]; "
    "the authors' models read it beside u[k], one frame too early, and their sums begin one solver step early"
)
_BLOCK = 1 << 21  # values of a column held in memory at a time
_COORDINATES = 1 << 16  # more distinct values than this are no coordinate axis
_SAME = 1e-6  # ends that differ by less, relative to max|u|, are equal


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
    def house(self) -> str:
        """The axes in our own order, time first."""
        return "T" + self.axes.replace("T", "")

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.coordinates, "W", "sol", *(("eps",) if self.eps else ()))

    def to_file(self, array: np.ndarray) -> np.ndarray:
        """(N, T, X, ..) -> the order of the file."""
        return array.transpose(0, *(1 + self.house.index(a) for a in self.axes))

    def to_house(self, array: np.ndarray) -> np.ndarray:
        """The order of the file -> (N, T, X, ..)."""
        return array.transpose(0, *(1 + self.axes.index(a) for a in self.house))

    def trim(self, array: np.ndarray, axis: str) -> np.ndarray:
        """(N, T, X, ..) without its last entry along the padded axis; unchanged if there is none."""
        keep = [slice(None), *(slice(None, -1 if a == axis else None) for a in self.house)]
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
_NAMES = {"phi41": "Phi41", "phi42": "Phi42", "kdv": "KdV", "wave": "wave", "kpz": "KPZ", "nse": "NS"}
_VARIANTS = {"phi41": "1d", "wave": "1d", "kpz": "1d", "kdv": "kdv", "phi42": "phi42", "nse": "ns"}
_TAGS = (
    r"_(?P<equation>phi41|phi42|kdv|wave|kpz|navier|ns(?=e?_))",
    r"_(?P<task>u0_xi|xi_u0|xi)_",
    r"(?:_|kdv)(?P<noise>q|cyl)_",
    r"(?:_|sigma)(?P<sigma>01|1)_.*xi_",
    r"_(?P<renormalisation>reno|expl)_",
    r"_(?:trc|eps|j)?(?P<truncation>\d+)_(?P<samples>\d+)_$",
)


class Flat(NamedTuple):
    """The arrays of a flat file as (N, T, X, ..), without padding."""

    coordinates: dict[str, np.ndarray]
    W: np.ndarray
    sol: np.ndarray
    eps: float | None


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
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with pq.ParquetWriter(
            temporary,
            schema,
            compression="zstd",
            use_dictionary=[c for c in layout.columns if c not in ("W", "sol")],
            use_byte_stream_split=["W", "sol"],
            write_statistics=False,
            write_page_checksum=True,
        ) as writer:
            for w, sol in blocks:
                writer.write_table(_table(schema, layout, coordinates, w, sol, eps), row_group_size=_BLOCK)
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(f"cannot write {path} ({_first_line(error)})") from None
    finally:
        temporary.unlink(missing_ok=True)
    return path


def _table(
    schema: pa.Schema,
    layout: Layout,
    coordinates: Mapping[str, np.ndarray],
    w: np.ndarray,
    sol: np.ndarray,
    eps: float | None,
) -> pa.Table:
    shape = tuple(map(max, w.shape, sol.shape))
    for name, array, padding in (("W", w, layout.w_padding), ("sol", sol, layout.sol_padding)):
        if layout.trim(np.empty(shape, dtype=bool), padding).shape != array.shape:
            raise UserError(f"{name} is {array.shape}; beside the other field that is not layout '{layout.variant}'")
    sizes = dict(zip(layout.house, shape[1:], strict=True))
    ordered = (shape[0], *(sizes[a] for a in layout.axes))
    values = {"W": _padded(w, shape), "sol": _padded(sol, shape)}
    columns = {name: layout.to_file(array).reshape(-1) for name, array in values.items()}
    for axis in layout.coordinates:
        if len(coordinates[axis]) != sizes[axis]:
            raise UserError(f"{len(coordinates[axis])} coordinates {axis} for {sizes[axis]} points")
        along = [-1 if a == axis else 1 for a in layout.axes]
        columns[axis] = np.broadcast_to(np.reshape(coordinates[axis], along), ordered).reshape(-1)
    if layout.eps:
        columns["eps"] = np.full(math.prod(shape), eps)
    return pa.Table.from_arrays([pa.array(columns[f.name]).cast(f.type) for f in schema], schema=schema)


def _padded(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The array in the corner of one of this shape, NaN elsewhere."""
    if array.shape == shape:
        return array
    out = np.full(shape, np.nan, dtype=array.dtype)
    out[tuple(slice(size) for size in array.shape)] = array
    return out


def read_flat(path: Path, layout: Layout) -> Flat:
    """All of a flat file at once, W in float64 and sol in float32; `import_published` goes through it in blocks."""
    source = _Source(Path(path))
    coordinates = source.coordinates(layout)
    n, sizes = source.shape(layout, coordinates)
    full = np.empty((n, *(sizes[a] for a in layout.house)), dtype=bool)
    w = np.empty(layout.trim(full, layout.w_padding).shape, dtype=np.float64)
    sol = np.empty(layout.trim(full, layout.sol_padding).shape, dtype=np.float32)
    done = 0
    for some_w, some_sol in source.blocks(layout, sizes):
        rows = slice(done, done + len(some_w))
        w[rows], sol[rows] = layout.trim(some_w, layout.w_padding), layout.trim(some_sol, layout.sol_padding)
        done = rows.stop
    return Flat(coordinates, w, sol, source.eps())


class _Source:
    """An opened flat file: its columns, coordinates and shape, and its fields in blocks of whole samples."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise UserError(f"no such file: {path}")
        with self._reading():
            self._file = pq.ParquetFile(path, page_checksum_verification=True)
            self.columns = self._file.schema_arrow.names
            self.rows = int(self._file.metadata.num_rows)
            self._metadata = self._file.schema_arrow.metadata or {}
        for name in set(self.columns) & {"T", "X", "Y", "W", "sol", "eps"}:
            kind = self._file.schema_arrow.field(name).type
            if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
                raise UserError(f"{path}: column {name} must hold numbers, it holds {kind}")
        self.require("T", "W", "sol")

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, ValueError) as error:
            line = f"{self.path} is not a whole Parquet file ({_first_line(error)}); fetch it again"
            raise UserError(line) from None

    def require(self, *names: str) -> None:
        if missing := [name for name in names if name not in self.columns]:
            found = ", ".join(self.columns[:8]) or "none"
            raise UserError(f"{self.path}: no column {', '.join(missing)}, which a published file has; found {found}")

    def origin(self) -> dict[str, Any] | None:
        """The identity that `export_published` left in the file."""
        text = self._metadata.get(ORIGIN.encode())
        with self._reading():
            return None if text is None else json.loads(text)

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
        return {axis: self._distinct(axis) for axis in layout.house if axis in self.columns}

    def _distinct(self, axis: str) -> np.ndarray:
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
            raise UserError(f"{self.path}: column {axis} must hold evenly spaced, rising values; it has {len(found)}")
        return found

    def shape(self, layout: Layout, coordinates: Mapping[str, np.ndarray]) -> tuple[int, dict[str, int]]:
        """(n, points of each axis): n from the number of rows, a square grid where X and Y have no column."""
        sizes = {axis: len(values) for axis, values in coordinates.items()}
        known = math.prod(sizes.values())
        if not self.rows or self.rows % known:
            text = " x ".join(f"{size} {axis}" for axis, size in sizes.items())
            raise UserError(f"{self.path}: {self.rows} rows are no multiple of {text}; it is cut or misses coordinates")
        if absent := [axis for axis in layout.house if axis not in sizes]:
            sizes |= dict.fromkeys(absent, self._side(self.rows // known))
        return self.rows // math.prod(sizes.values()), sizes

    def _side(self, cells: int) -> int:
        """s with cells = n s^2: n from the file's name, else 64 (the authors' reader) or 16 (their generator)."""
        if samples := guess_tags(self.path.stem).get("samples"):
            side = math.isqrt(cells // samples)
            if samples * side * side == cells and side:
                return side
            raise UserError(f"{self.path}: {cells} values a frame are not {samples} square grids, as the name has it")
        fits = [side for side in (64, 16) if cells % side**2 == 0]
        fits = [side for side in fits if cells == 1200 * side**2] or fits
        if len(fits) == 1:
            return fits[0]
        raise UserError(
            f"{self.path}: {cells} values a frame do not tell the grid; let the name end in -J-n.parquet (n samples)"
        )

    def blocks(
        self, layout: Layout, sizes: Mapping[str, int], columns: Sequence[str] = ("W", "sol")
    ) -> Iterator[tuple[np.ndarray, ...]]:
        """The columns as (samples, T, X, ..) in float64, padding included; each block reuses the memory of the last."""
        shape = [sizes[axis] for axis in layout.axes]
        size = math.prod(shape)
        whole = size * min(max(1, _BLOCK // size), self.rows // size)
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
                        yield tuple(layout.to_house(b.reshape(-1, *shape)) for b in buffers.values())
                        filled = 0
        if filled:
            yield tuple(layout.to_house(b[:filled].reshape(-1, *shape)) for b in buffers.values())


# --- native -> published ------------------------------------------------------------------------------------------
def export_published(dataset: Dataset, out: Path, *, name: str | None = None) -> Path:
    """Write the dataset in the flat layout into the folder ``out``; the same export found there is left alone."""
    layout = _layout_of(dataset)
    name = name or published_name(dataset)
    if Path(name).name != name:
        raise UserError(f"name must be a file name without folders, got '{name}'")
    path = Path(out) / (name if name.endswith(".parquet") else f"{name}.parquet")
    if path.exists():
        if _Source(path).origin() == dataset.identity:
            return path
        raise UserError(f"{path} is there already and was made from other data; remove it or give another name")
    check_folder(path.parent)
    grid = dataset.grid
    coordinates = {"T": dataset.times}
    for axis, letter in enumerate(layout.house[1:]):
        points = grid.coordinates(axis).numpy()
        coordinates[letter] = np.append(points, grid.upper[axis]) if layout.closed else points
    eps = dataset.identity["published"].get("eps") if dataset.imported else dataset.equation.truncation
    return write_flat(path, layout, coordinates, _flat_blocks(dataset, layout), eps=eps, origin=dataset.identity)


def _layout_of(dataset: Dataset) -> Layout:
    if dataset.imported:
        return LAYOUTS[dataset.identity["published"]["variant"]]
    name = dataset.equation.name
    if name not in _VARIANTS:
        raise UserError(f"{name} has no published layout; it exists for {', '.join(_VARIANTS)}")
    return LAYOUTS[_VARIANTS[name]]


def published_name(dataset: Dataset) -> str:
    """``{SPDE name}-{Tasks}-{Truncation degree}-{Sample size}.parquet``: Phi41-01_xi-128-1200.parquet for sigma 0.1."""
    if dataset.imported:
        return dataset.identity["published"]["file"]
    e = dataset.equation
    tags = [e.task]
    if e.name == "kdv":
        tags.insert(0, "Q" if e.noise == "q_wiener" else "cyl")
    elif e.name in ("phi41", "kpz"):
        tags.insert(0, _digits(e.sigma))
    elif e.name == "phi42":
        tags.insert(0, "expl" if e.renormalisation == "none" else "reno")
    if e.name == "kpz":
        tags.append(f"lam{_digits(e.coupling)}")
    return f"{_NAMES[e.name]}-{'_'.join(tags)}-{e.truncation}-{len(dataset)}.parquet"


def _digits(value: float) -> str:
    """0.1 -> 01, 1 -> 1."""
    return f"{value:g}".replace(".", "")


def _flat_blocks(dataset: Dataset, layout: Layout) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(W, sol) of some samples at a time, as (samples, T, X, ..)."""
    count = max(1, _BLOCK // math.prod(dataset.shapes["u"]))
    periodic = dataset.grid.periodic
    for start in range(0, len(dataset), count):
        dw, u = (dataset.read(column, start, start + count) for column in ("dw", "u"))
        w = dw[:, 1:] if layout.increments else np.cumsum(dw, axis=1, dtype=np.float64)
        if layout.closed:
            w, u = (_close(w, periodic), u if layout.sol_padding else _close(u, periodic))
        yield w, u


def _close(array: np.ndarray, periodic: bool) -> np.ndarray:
    """The field with its right end: the left one again on a torus, 0 for Dirichlet."""
    end = array[..., :1]
    return np.concatenate([array, end if periodic else np.zeros_like(end)], axis=-1)


# --- published -> native ------------------------------------------------------------------------------------------
def import_published(source: Path, out: Path, *, variant: str = "auto") -> Path:
    """Read a flat file and write ``{stem}-native.parquet`` with u0, dw, u into the folder ``out``.

    dw_k = W(t_k) - W(t_{k-1}), dw_0 = 0, differenced in float64. A closed axis loses its right end. In ns the stored
    increments are taken as they are and put on the frame at which their interval ends: dw_{k+1} = W_k.
    """
    if variant not in ("auto", *LAYOUTS):
        raise unknown("variant", variant, ("auto", *LAYOUTS))
    flat = _Source(Path(source))
    tags = guess_tags(flat.path.stem)
    layout = LAYOUTS[_variant(flat, tags) if variant == "auto" else variant]
    coordinates = flat.coordinates(layout)
    _, sizes = flat.shape(layout, coordinates)
    found = _survey(flat, layout, sizes)
    if variant == "auto" and layout.closed and (found.ends == "padded" or tags.get("equation") == "kdv"):
        layout = LAYOUTS["kdv"]
    grid = _grid(layout, coordinates, sizes, found.ends)
    identity = _identity(flat, layout, coordinates["T"], grid, found, tags)
    path = Path(out) / f"{flat.path.stem}-native.parquet"
    if path.exists():
        if canonical_json(open_dataset(path).identity) == canonical_json(identity):
            return path
        raise UserError(f"{path} is there already and came from another file; remove it or choose another folder")
    check_folder(path.parent)
    shape = (sizes["T"], *grid.points)
    rows = max(1, min(64, (2 << 20) // (8 * math.prod(shape))))
    shapes = {"u0": shape[1:], "dw": shape, "u": shape}
    with Writer(path, identity, shapes, rows, made_with("cpu")) as writer:
        for w, sol in flat.blocks(layout, sizes):
            writer.write(_native(layout, grid, w, sol, flat.path))
    return path


def guess_tags(stem: str) -> dict[str, Any]:
    """What a file's name tells: equation, task, noise, sigma, renormalisation, truncation, samples; what it can."""
    text = "_" + re.sub(r"[^0-9a-z]+", "_", stem.lower()).strip("_") + "_"
    tags: dict[str, Any] = {}
    for pattern in _TAGS:
        if match := re.search(pattern, text):
            tags |= match.groupdict()
    meanings = {"ns": "nse", "navier": "nse", "xi_u0": "u0_xi", "q": "Q", "01": 0.1, "1": 1.0}
    numbers = {key: int(tags[key]) for key in ("truncation", "samples") if key in tags}
    return {key: meanings.get(value, value) for key, value in tags.items()} | numbers


def _variant(flat: _Source, tags: Mapping[str, Any]) -> str:
    """The variant that the columns show; 1d stands for kdv as well until sol has been looked at."""
    if "X" not in flat.columns:
        return "ns"
    if "Y" not in flat.columns:
        return "1d"
    if "eps" in flat.columns or tags.get("equation") == "phi42":
        return "phi42"
    if tags.get("equation") == "nse":
        return "ns"
    raise UserError(f"{flat.path}: columns X and Y without eps fit phi42 and ns; say which with variant")


@dataclass(frozen=True)
class _Survey:
    """What all of sol shows: the samples with non-finite values, and its last point in x beside its first."""

    non_finite: int
    ends: str  # repeated | zero (both) | padded (the last one) | differ


def _survey(flat: _Source, layout: Layout, sizes: Mapping[str, int]) -> _Survey:
    non_finite, blank, largest, left, right, gap = 0, True, 0.0, 0.0, 0.0, 0.0
    for (sol,) in flat.blocks(layout, sizes, ("sol",)):
        first, last = sol[:, :, 0], sol[:, :, -1]
        inner = sol[:, :, :-1] if layout.closed else sol
        non_finite += int((~np.isfinite(inner)).reshape(len(sol), -1).any(axis=1).sum())
        blank &= bool(np.isnan(last).all())
        largest, left, right = max(largest, _size(inner)), max(left, _size(first)), max(right, _size(last))
        with np.errstate(invalid="ignore"):
            gap = max(gap, _size(last - first))
    small = _SAME * largest
    if blank or (right == 0 and left > small):
        return _Survey(non_finite, "padded")
    return _Survey(non_finite, "zero" if max(left, right) <= small else "repeated" if gap <= small else "differ")


def _size(values: np.ndarray) -> float:
    """max|v| over the finite values."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def _grid(layout: Layout, coordinates: Mapping[str, np.ndarray], sizes: Mapping[str, int], ends: str) -> Grid:
    """One period (or the interval) without its right end; the unit square where the file has no coordinates."""
    points, lower, upper = [], [], []
    for axis in layout.house[1:]:
        x = coordinates.get(axis, np.arange(sizes[axis]) / sizes[axis])
        points.append(len(x) - layout.closed)
        lower.append(float(x[0]))
        upper.append(float(x[-1]) if layout.closed else float(x[0] + (x[-1] - x[0]) * len(x) / (len(x) - 1)))
    boundary: Boundary = "dirichlet" if layout.variant == "1d" and ends == "zero" else "periodic"
    return Grid(tuple(points), tuple(lower), tuple(upper), boundary)


def _identity(
    flat: _Source, layout: Layout, times: np.ndarray, grid: Grid, found: _Survey, tags: Mapping[str, Any]
) -> dict[str, Any]:
    """The origin of an imported file, in place of a spec."""
    with open(flat.path, "rb") as file:
        checksum = hashlib.file_digest(file, "sha256").hexdigest()
    published: dict[str, Any] = {"file": flat.path.name, "sha256": checksum, "variant": layout.variant}
    published |= {"tags": dict(tags), "non_finite_samples": found.non_finite}
    if layout.closed:
        published["ends"] = found.ends
    if layout.eps:
        published["eps"] = flat.eps()
    if layout.increments:
        published["note"] = _NOTE
    if origin := flat.origin():
        published["origin"] = origin
    return {"published": published, "grid": asdict(grid), "times": times.tolist(), "layout": LAYOUT}


def _native(
    layout: Layout, grid: Grid, w: np.ndarray, sol: np.ndarray, path: Path
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """u0, dw, u of a block in float32, on the points of the grid."""
    on_grid = (slice(None), slice(None), *(slice(size) for size in grid.points))
    w, u = layout.trim(w, layout.w_padding)[on_grid], sol[on_grid].astype(np.float32)
    if not np.isfinite(w).all():
        raise UserError(f"{path}: W is not finite where variant '{layout.variant}' has no padding; try another variant")
    dw = np.zeros(u.shape, dtype=np.float32)
    dw[:, 1:] = w if layout.increments else np.diff(w, axis=1)
    return u[:, 0], dw, u


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]
