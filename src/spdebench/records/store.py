"""Run records on disk: ``<folder>/<equation>.jsonl``, one line per run; lines are appended and never changed.

Records with the same digest are of the same run. A second one is ignored, except for its additions (scores by further
metrics or on further data, figure data, a time measured exclusively): these are appended as a short line and merged
when read.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spdebench import files
from spdebench.errors import UserError
from spdebench.file_locks import NO_LINK, check_lock, lock_exclusive
from spdebench.files import MOST_LINES, check_regular, make_folder, read_bytes, sync_folder
from spdebench.records.record import Addition, Record, decode_line
from spdebench.records.times import share_times
from spdebench.spec import loads

FOLDER = Path("results")
"""Where records are collected unless another folder is named."""


def known(folder: str | os.PathLike[str] | None = None) -> dict[str, Record]:
    """The records of a folder; if none is named, those that are part of the package and those in `FOLDER`."""
    if folder is not None:
        return read(folder)
    shipped = shipped_folder()
    return read(FOLDER) if shipped is None or FOLDER.resolve() == shipped else read(shipped, FOLDER)


def shipped_folder() -> Path | None:
    """The records that are part of the package: inside an installed package, or in the top folder of a clone."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parents[1]
    places = [package / "results", *([checkout / "results"] if (checkout / "pyproject.toml").is_file() else [])]
    return next((place for place in places if place.is_dir()), None)


def read(*folders: str | os.PathLike[str]) -> dict[str, Record]:
    """The records of all files in these folders, by digest; a folder need not exist."""
    found: dict[str, Record] = {}
    for place in map(Path, folders):
        try:
            if place.exists() and not place.is_dir():
                raise UserError(f"{place} is a file, not a folder of run records; choose another with --results")
            for path in sorted(place.glob("*.jsonl")) if place.exists() else []:
                _merge_lines(found, _text(path), path)
        except OSError as error:
            raise UserError(f"cannot read {place} ({error.strerror}); choose another folder with --results") from None
    return share_times(found)


def add(folder: str | os.PathLike[str], record: Record) -> bool:
    """Append a record, or its additions to a known one; False if it adds nothing. Safe for concurrent processes."""
    path = Path(folder) / record.file_name
    try:
        make_folder(path.parent)
        with _locked(path) as file:
            known: dict[str, Record] = {}
            content = file.read()
            if torn := _incomplete_bytes(content):
                os.ftruncate(file.fileno(), len(content) - torn)
            _merge_lines(known, _decoded(content[: len(content) - torn], path), path)
            old = known.get(record.digest)
            fresh = record if old is None else record.addition_to(old)
            if fresh is None:
                return False
            _append(file, _line(fresh))
            if not content:
                sync_folder(path.parent)
            return True
    except OSError as error:
        raise UserError(
            f"cannot write {path} ({error.strerror}); the run is kept in its folder, and the same command with a "
            f"writable --results collects it"
        ) from None


def check_writable(folder: str | os.PathLike[str]) -> None:
    """Refuse, before anything is trained, a folder into which records cannot be written or where locks do not work."""
    place = Path(folder)
    try:
        make_folder(place)
        files.check_writable(place)
    except OSError as error:
        raise UserError(f"cannot write into {place} ({error.strerror}); choose another with --results") from None


# --- lines --------------------------------------------------------------------------------------------------------
def _line(fresh: Record | Addition) -> str:
    """The record as one line of JSON; a record that `read` would refuse is refused here."""
    try:
        line = json.dumps(fresh.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        decode_line(loads(line))
    except (ValueError, TypeError) as error:
        raise UserError(f"this is not a run record ({error}); train the run again") from None
    return line


def _text(path: Path) -> str:
    content = read_bytes(path, MOST_LINES)
    return _decoded(content[: len(content) - _incomplete_bytes(content)], path)


def _incomplete_bytes(content: bytes) -> int:
    """Number of bytes of an incomplete last line: its process is still writing or was killed (then the run is added
    again)."""
    last = content[content.rfind(b"\n") + 1 :]
    try:
        json.loads(last or b"null")
    except (ValueError, RecursionError):
        return len(last)
    return 0


def _decoded(content: bytes, path: Path) -> str:
    """The content as text; an error names the line that is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line}, is not a run record (it is not text); remove the line") from None


@functools.lru_cache(maxsize=8192)
def _entry(line: str) -> Record | Addition:
    """The record in a line. A command reads the same lines several times, for its plan, its phases and its table."""
    return decode_line(loads(line))


def _merge_lines(found: dict[str, Record], text: str, path: Path) -> None:
    """Add the records and additions in the lines of a file to ``found``."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = _entry(line)
        except (ValueError, UserError) as error:
            raise UserError(f"{path}, line {number}, is not a run record ({error}); remove the line") from None
        known = found.get(entry.digest)
        if known is None and isinstance(entry, Record):
            found[entry.digest] = entry
        elif known is not None:  # otherwise the record to which the addition belongs was removed
            found[entry.digest] = known.filled_from(entry) if isinstance(entry, Record) else known.with_addition(entry)


def _without_links(path: str, flags: int) -> int:
    """Open a file, but not through a symbolic link, which results of other people may contain."""
    return os.open(path, flags | NO_LINK, 0o644)


@contextmanager
def _locked(path: Path) -> Iterator[Any]:
    """Open and lock a file of records, for reading and appending."""
    if path.exists():
        check_regular(path, MOST_LINES)
    # Without a buffer, since what a failed write leaves in a buffer would be written when the file is closed.
    with open(path, "a+b", buffering=0, opener=_without_links) as file:
        lock_exclusive(file)
        check_lock(file.fileno(), path)
        file.seek(0)
        yield file


def _append(file: Any, line: str) -> None:
    """Append one complete line; if that fails (a full disk), restore the file."""
    size = file.seek(0, os.SEEK_END)
    start = b""
    if size:
        file.seek(size - 1)
        start = b"" if file.read(1) == b"\n" else b"\n"
    rest = start + line.encode() + b"\n"
    try:
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())
    except OSError:
        os.ftruncate(file.fileno(), size)
        raise
