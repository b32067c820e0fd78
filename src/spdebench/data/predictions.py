"""Predictions from files, aligned with the true samples, and reference ensembles for the scores."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np

from spdebench.data.store import Dataset, open_dataset
from spdebench.errors import UserError, first_line, without_aliasing_warning
from spdebench.files import check_regular
from spdebench.solvers import simulate

_HEADER = 1 << 16  # bytes before the numbers of a .npy


def parse_rows(rows: str, count: int) -> tuple[int, int]:
    """``START:STOP`` within ``count`` rows; empty for all."""
    if not rows:
        return 0, count
    first, colon, last = rows.partition(":")
    try:
        start, stop = int(first or 0), int(last or count)
    except ValueError:
        start = stop = -1
    if not colon or not 0 <= start < stop <= count:
        raise UserError(f"rows must be START:STOP within 0:{count}, got '{rows}'")
    return start, stop


def read_prediction(path: Path, truth: Dataset, rows: str, *, has_t0: bool) -> tuple[np.ndarray, np.ndarray]:
    """The predicted and the true u of the chosen rows. Arrays come from .npy, .npz (one array, or ``prediction`` or
    ``u``) or a native file, of which the same rows are taken."""
    start, stop = parse_rows(rows, len(truth))
    true = truth.read("u", start, stop)
    if not path.is_file():
        raise UserError(f"no such prediction: {path}")
    if path.suffix == ".parquet":
        predicted = open_dataset(path).read("u", start, stop)
        predicted = predicted if has_t0 else predicted[:, 1:]
    else:
        predicted = read_array(path, 16 * true.size)
    return predicted, true if has_t0 else true[:, 1:]


def read_array(path: Path, max_bytes: int) -> np.ndarray:
    """The array of a file, read as numbers only; ``max_bytes`` bounds the bytes that an archive may unpack to."""
    if path.suffix not in (".npy", ".npz"):
        raise UserError(f"a prediction is a .npy, .npz or native .parquet file, got {path.name}")
    try:
        check_regular(path)
        array = (
            _unpacked(path, max_bytes) if zipfile.is_zipfile(path) else np.load(path, mmap_mode="r", allow_pickle=False)
        )
    except UserError:
        raise
    except Exception as error:  # a damaged header raises whatever its damage leads to
        raise UserError(f"{path} cannot be read as an array ({first_line(error)})") from None
    if array.dtype.kind not in "fiu":
        raise UserError(f"{path} must hold an array of numbers, it holds {array.dtype}")
    return array


def _unpacked(path: Path, max_bytes: int) -> np.ndarray:
    """The array in an NPZ file: the only one, or that named ``prediction`` or ``u``, of at most ``max_bytes``."""
    with zipfile.ZipFile(path) as archive:
        sizes = {entry.filename.removesuffix(".npy"): entry.file_size for entry in archive.infolist()}
    names = list(sizes)
    wanted = [n for n in ("prediction", "u") if n in names] or names
    if not wanted or (len(wanted) != 1 and wanted == names):
        listed = ", ".join(names[:8]) or "nothing"
        raise UserError(f"{path} holds {listed}; it must hold one array, or one named 'prediction'")
    if sizes[wanted[0]] > max_bytes + _HEADER:
        raise UserError(f"{path} unpacks to {sizes[wanted[0]]} bytes, more than any prediction of these samples")
    with zipfile.ZipFile(path) as archive, archive.open(f"{wanted[0]}.npy") as file:
        values: np.ndarray = np.load(io.BytesIO(file.read(max_bytes + _HEADER)), allow_pickle=False)
    return values


def ensembles(truth: Dataset, rows: str, *, has_t0: bool) -> tuple[np.ndarray | None, np.ndarray | None]:
    """An independent ensemble of the same law (the samples after the dataset's own), and the converged edition on the
    dataset's own paths; (None, None) for imported files, which have no spec."""
    if truth.imported:
        return None, None
    start, stop = parse_rows(rows, len(truth))
    eq, seed, n = truth.equation, truth.spec.seed, len(truth)
    with without_aliasing_warning():
        fresh = simulate(eq, seed, range(n, n + stop - start)).u
        better = simulate(eq.replace(edition="converged"), seed, range(start, stop)).u
    first = 0 if has_t0 else 1
    return fresh[:, first:].numpy(), better[:, first:].numpy()
