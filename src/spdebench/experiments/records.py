"""Run records: ``<folder>/<equation>.jsonl``, one line a run, only appended to; tables read nothing else.

Records of the same digest are the same run: a second one is ignored, except that it may bring scores on further
datasets (``shifts``) or a time taken ``alone``, which are appended as a short line of their own and merged when read.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spdebench.errors import UserError
from spdebench.experiments import times

Record = dict[str, Any]

_WHOLE = {"datasets": list, "model": str, "config": dict, "task": dict, "scores": dict}


def read(folder: str | os.PathLike[str] = "results") -> dict[str, Record]:
    """Digest -> record, of all files; a folder that is not there holds none."""
    found: dict[str, Record] = {}
    place = Path(folder)
    try:
        files = sorted(place.glob("*.jsonl")) if place.exists() else []
        for path in files:
            _merge_lines(found, path.read_text(encoding="utf-8"), path)
    except OSError as error:
        raise UserError(f"cannot read {place} ({error.strerror}); choose another folder with --results") from None
    times.spread(found)
    return found


def add(folder: str | os.PathLike[str], record: Record) -> bool:
    """Append a record, or what is new of it; False if there was nothing new. Safe between processes."""
    path = Path(folder) / f"{equation_of(record)}.jsonl"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path) as file:
            known: dict[str, Record] = {}
            _merge_lines(known, file.read().decode(), path)
            fresh = _new_part(known.get(record["digest"]), record)
            if fresh is None:
                return False
            _append(file, json.dumps(_plain(fresh), sort_keys=True, separators=(",", ":"), allow_nan=False))
            return True
    except OSError as error:
        raise UserError(
            f"cannot write {path} ({error.strerror}); the run is kept in its folder, and the same command with a "
            f"writable --results collects it"
        ) from None


def check_writable(folder: str | os.PathLike[str]) -> None:
    """Refuse, before anything is trained, a folder into which records cannot be written."""
    place = Path(folder)
    probe = place / f".probe.{os.getpid()}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UserError(f"cannot write into {place} ({error.strerror}); choose another with --results") from None


def equation_of(record: Record) -> str:
    """The name of the file that a record belongs to."""
    datasets = record.get("datasets") or [{}]
    return str(datasets[0].get("equation") or "imported")


# --- lines --------------------------------------------------------------------------------------------------------
def _merge_lines(found: dict[str, Record], text: str, path: Path) -> None:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            record = _checked(json.loads(line))
        except ValueError as error:
            raise UserError(f"{path}, line {number}, is not a run record ({error}); take the line out") from None
        known = found.get(record["digest"])
        if known is None and "datasets" in record:  # else a later line of a record that was taken out
            found[record["digest"]] = record
        elif known is not None:
            for label, shift in record.get("shifts", {}).items():
                known.setdefault("shifts", {}).setdefault(label, shift)
            if record.get("alone"):
                known |= {"alone": True, "inference_ms": record["inference_ms"]}


def _checked(record: Any) -> Record:
    """What a line must have: a digest, and if it names datasets all that a whole record is known by."""
    if not isinstance(record, dict) or not isinstance(record.get("digest"), str):
        raise ValueError("it has no digest")
    if record.get("version") != 1:
        raise ValueError(f"version {record.get('version')!r}, this one reads 1")
    for key, kind in (_WHOLE if "datasets" in record else {}).items():
        if not isinstance(record.get(key), kind):
            raise ValueError(f"its {key} is {record.get(key)!r}")
    if not all(isinstance(d, dict) for d in record.get("datasets", [{}]) or [None]):
        raise ValueError("it names no dataset")
    if not isinstance(record.get("shifts", {}), dict):
        raise ValueError(f"its shifts are {record['shifts']!r}")
    return record


def _new_part(known: Record | None, record: Record) -> Record | None:
    if known is None:
        return record
    fresh: Record = {}
    if shifts := {k: v for k, v in record.get("shifts", {}).items() if k not in known.get("shifts", {})}:
        fresh["shifts"] = shifts
    if record.get("alone") and not known.get("alone"):
        fresh |= {"alone": True, "inference_ms": record["inference_ms"]}
    return {key: record[key] for key in ("version", "digest", "name", "model")} | fresh if fresh else None


@contextmanager
def _locked(path: Path) -> Iterator[Any]:
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        yield file


def _append(file: Any, line: str) -> None:
    """Write one line whole, or (a full disk) leave the file as it was."""
    size = file.seek(0, os.SEEK_END)
    start = b""
    if size:
        file.seek(size - 1)
        start = b"" if file.read(1) == b"\n" else b"\n"
    try:
        file.write(start + line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    except OSError:
        os.ftruncate(file.fileno(), size)
        raise


def _plain(value: Any) -> Any:
    """Numbers that JSON lacks become "inf", "-inf", "nan", which float() reads."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
