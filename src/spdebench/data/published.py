"""Conversion between native files and the authors' published flat layout, which `spdebench.data.flat` describes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spdebench.data.checks import check_folder
from spdebench.data.flat import BLOCK, LAYOUTS, Layout, Source, guess_tags, write_flat
from spdebench.data.identity import LAYOUT
from spdebench.data.store import Dataset, open_dataset
from spdebench.data.writer import Writer
from spdebench.equations.inputs import TASK_IN_FILE_NAMES
from spdebench.errors import UserError, unknown
from spdebench.files import plain_name
from spdebench.grids import Boundary, Grid
from spdebench.spec import canonical_json
from spdebench.version import made_with

_NOTE = (
    "frame k of W in the file is the noise that drives u from frame k to frame k + 1, and stands here as dw[k + 1]; "
    "the authors' models read it beside u[k], one frame too early, and their sums begin one solver step early"
)
_SAME = 1e-6  # ends that differ by less, relative to max|u|, are equal
_NAMES = {"phi41": "Phi41", "phi42": "Phi42", "kdv": "KdV", "wave": "wave", "kpz": "KPZ", "nse": "NS"}
_VARIANTS = {"phi41": "1d", "wave": "1d", "kpz": "1d", "kdv": "kdv", "phi42": "phi42", "nse": "ns"}


# --- native -> published ------------------------------------------------------------------------------------------
def export_published(dataset: Dataset, out: Path, *, name: str | None = None) -> Path:
    """Write the dataset in the flat layout into the folder ``out``; the same export found there is left alone."""
    layout = _layout_of(dataset)
    name = plain_name(name or published_name(dataset), "the name of the flat file")
    path = Path(out) / (name if name.endswith(".parquet") else f"{name}.parquet")
    if path.exists():
        if Source(path).origin() == dataset.identity:
            return path
        raise UserError(f"{path} already exists and was made from other data; remove it or give another name")
    check_folder(path.parent)
    grid = dataset.grid
    coordinates = {"T": dataset.times}
    for axis, letter in enumerate(layout.package_axes[1:]):
        points = grid.coordinates(axis).numpy()
        coordinates[letter] = np.append(points, grid.upper[axis]) if layout.closed else points
    eps = dataset.identity["published"].get("eps") if dataset.imported else dataset.equation.truncation
    if layout.eps and not isinstance(eps, int | float):
        raise UserError(f"{dataset.path}: its origin has the truncation eps={eps!r}, a number is needed")
    return write_flat(path, layout, coordinates, _flat_blocks(dataset, layout), eps=eps, origin=dataset.identity)


def _layout_of(dataset: Dataset) -> Layout:
    """The published layout of a dataset: that of its source if it was imported, else that of its equation."""
    if dataset.imported:
        variant = str(dataset.identity["published"].get("variant"))
        if variant not in LAYOUTS or len(LAYOUTS[variant].package_axes) != 1 + dataset.grid.dim:
            raise unknown(f"variant in {dataset.path}:", variant, LAYOUTS)
        return LAYOUTS[variant]
    name = dataset.equation.name
    if name not in _VARIANTS:
        raise UserError(f"{name} has no published layout; it exists for {', '.join(_VARIANTS)}")
    return LAYOUTS[_VARIANTS[name]]


def published_name(dataset: Dataset) -> str:
    """``{SPDE name}-{Tasks}-{Truncation degree}-{Sample size}.parquet``: Phi41-01_xi-128-1200.parquet for sigma 0.1."""
    if dataset.imported:
        return str(dataset.identity["published"]["file"])
    e: Any = dataset.equation  # fields that only some equations have are read below
    tags = [TASK_IN_FILE_NAMES[e.task]]
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
    """A number without its decimal point, as in the authors' file names: 0.1 -> 01, 1 -> 1."""
    return f"{value:g}".replace(".", "")


def _flat_blocks(dataset: Dataset, layout: Layout) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(W, sol) of some samples at a time, as (samples, T, X, ..)."""
    count = max(1, BLOCK // math.prod(dataset.shapes["u"]))
    periodic = dataset.grid.periodic
    for start in range(0, len(dataset), count):
        dw, u = (dataset.read(column, start, start + count) for column in ("dw", "u"))
        w = dw[:, 1:] if layout.increments else np.cumsum(dw, axis=1, dtype=np.float64)
        if layout.closed:
            w, u = (_with_right_end(w, periodic), u if layout.sol_padding else _with_right_end(u, periodic))
        yield w, u


def _with_right_end(array: np.ndarray, periodic: bool) -> np.ndarray:
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
    flat = Source(Path(source))
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
        raise UserError(f"{path} already exists and came from another file; remove it or choose another folder")
    check_folder(path.parent)
    shape = (sizes["T"], *grid.points)
    rows = max(1, min(64, (2 << 20) // (8 * math.prod(shape))))
    shapes = {"u0": shape[1:], "dw": shape, "u": shape}
    with Writer(path, identity, shapes, rows, made_with("cpu")) as writer:
        for w, sol in flat.blocks(layout, sizes):
            writer.write(_native(layout, grid, w, sol, flat.path))
    return path


def _variant(flat: Source, tags: Mapping[str, Any]) -> str:
    """The variant that fits the columns; ``1d`` also for kdv, which differs only in the values of sol."""
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
    """Facts from all values of sol: the number of samples with non-finite values, and how its two ends in x compare."""

    non_finite: int
    ends: str  # repeated | zero (both) | padded (the last one) | differ


def _survey(flat: Source, layout: Layout, sizes: Mapping[str, int]) -> _Survey:
    """Read all of sol and return the facts that decide on variant and boundary."""
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
    """The grid of the samples, without its right end; the unit square if the file has no coordinates."""
    points, lower, upper = [], [], []
    for axis in layout.package_axes[1:]:
        x = coordinates.get(axis, np.arange(sizes[axis]) / sizes[axis])
        points.append(len(x) - layout.closed)
        lower.append(float(x[0]))
        upper.append(float(x[-1]) if layout.closed else float(x[0] + (x[-1] - x[0]) * len(x) / (len(x) - 1)))
    boundary: Boundary = "dirichlet" if layout.variant == "1d" and ends == "zero" else "periodic"
    return Grid(tuple(points), tuple(lower), tuple(upper), boundary)


def _identity(
    flat: Source, layout: Layout, times: np.ndarray, grid: Grid, found: _Survey, tags: Mapping[str, Any]
) -> dict[str, Any]:
    """The origin of an imported file, which is stored instead of a spec."""
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
    """u0, dw, u of a block, in float32 at the points of the grid."""
    on_grid = (slice(None), slice(None), *(slice(size) for size in grid.points))
    w, u = layout.trim(w, layout.w_padding)[on_grid], sol[on_grid].astype(np.float32)
    if not np.isfinite(w).all():
        raise UserError(f"{path}: W is not finite where variant '{layout.variant}' has no padding; try another variant")
    dw = np.zeros(u.shape, dtype=np.float32)
    dw[:, 1:] = w if layout.increments else np.diff(w, axis=1)
    return u[:, 0], dw, u
