"""Predictions from files, lined up with the truth, and the ensembles that give scores their meaning."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spdebench.data.store import Dataset, open_dataset
from spdebench.errors import UserError, folding_known
from spdebench.solvers import simulate


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
        predicted = _read_array(path)
    return predicted, true if has_t0 else true[:, 1:]


def _read_array(path: Path) -> np.ndarray:
    if path.suffix not in (".npy", ".npz"):
        raise UserError(f"a prediction is a .npy, .npz or native .parquet file, got {path.name}")
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            names = list(loaded.files)
            wanted = [n for n in ("prediction", "u") if n in names] or names
            if len(wanted) != 1 and wanted == names:
                raise UserError(f"{path} holds the arrays {', '.join(names)}; name the predicted one 'prediction'")
            return loaded[wanted[0]]
    except (ValueError, OSError, EOFError, KeyError) as error:
        raise UserError(f"{path} cannot be read as an array ({str(error).splitlines()[0]})") from None


def ensembles(truth: Dataset, rows: str, *, has_t0: bool) -> tuple[np.ndarray | None, np.ndarray | None]:
    """An independent ensemble of the same law (the samples after the dataset's own), and the converged edition on the
    dataset's own paths; (None, None) for imported files, which have no spec."""
    if truth.imported:
        return None, None
    start, stop = parse_rows(rows, len(truth))
    eq, seed, n = truth.equation, truth.spec.seed, len(truth)
    with folding_known():
        fresh = simulate(eq, seed, range(n, n + stop - start)).u
        better = simulate(eq.replace(edition="converged"), seed, range(start, stop)).u
    first = 0 if has_t0 else 1
    return fresh[:, first:].numpy(), better[:, first:].numpy()
