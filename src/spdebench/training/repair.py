"""Repair of a run whose files are empty or damaged, after a power cut or a disk error: they are renamed and computed
again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from spdebench.errors import Damaged, UserError
from spdebench.files import check_regular, set_aside
from spdebench.metrics import Scores
from spdebench.training import checkpoints
from spdebench.training.folder import checkpoint_file, read_json, read_record
from spdebench.training.run import Run


def is_complete(run: Run, test: bool) -> bool:
    """Whether a run is complete: it is trained (and tested, if ``test``), and its files can be read."""
    done = run.file("spec.json").exists() and (run.finished or (run.trained and not test))
    return done and not any(_is_damaged(path, read) for path, read in _files(run))


def rename_damaged_files(run: Run) -> None:
    """Rename files that cannot be read, and a record whose weights or scores are damaged; to be called under the
    lock."""
    damaged = [path for path, read in _files(run) if _is_damaged(path, read)]
    for path in damaged:
        set_aside(path)
    record = run.file("record.json")
    if record.exists() and any(path.name != "spec.json" for path in damaged):
        set_aside(record, f"belongs to {damaged[-1].name}")  # the run is tested once more


def _files(run: Run) -> Iterator[tuple[Path, Callable[[Path], object]]]:
    """Each file that is there, and how it is read."""
    readers: dict[Path, Callable[[Path], object]] = {
        run.file("spec.json"): read_json,
        run.file("record.json"): read_record,
        run.file("scores.json"): _read_scores,
        run.file("predictions.npy"): _read_array,
        run.file("members.npy"): _read_array,
        **{
            checkpoint_file(run.path, name): lambda path: checkpoints.load(path, run.spec.digest)
            for name in ("best", "last")
        },
    }
    return ((path, read) for path, read in readers.items() if path.exists())


def _is_damaged(path: Path, read: Callable[[Path], object]) -> bool:
    """Whether ``read`` finds the file damaged."""
    try:
        read(path)
    except Damaged:
        return True
    return False


def _read_scores(path: Path) -> None:
    """Raise `Damaged` if the file does not hold scores."""
    try:
        Scores.from_dict(read_json(path))
    except UserError as error:
        raise Damaged(str(error)) from None


def _read_array(path: Path) -> None:
    """Raise `Damaged` if the file does not hold an array; the array is not read into memory."""
    try:
        check_regular(path)
        np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a damaged header raises whatever its damage leads to
        raise Damaged(str(error)) from None
