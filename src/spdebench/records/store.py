"""Run records: ``<folder>/<equation>.jsonl``, one line a run, only appended to; tables read nothing else.

Records of the same digest are the same run: a second one is ignored, except that it may bring scores on further
datasets (``shifts``), what a figure needs (``kept``) or a time taken ``alone``, which are appended as a short line of
their own and merged when read.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spdebench.errors import UserError
from spdebench.files import lock_exclusive, plain_name
from spdebench.records import times
from spdebench.spec import loads

Record = dict[str, Any]

BLOCKS = ("shifts", "kept")
"""What a later line may add to."""

_WORDS = ("inf", "-inf", "nan")
_NUMBERS = ("val", "inference_ms", "training_seconds", "measuring_seconds", "epochs", "best_epoch", "peak_memory_mb")
_WHOLE = {"datasets": list, "model": str, "config": dict, "task": dict, "scores": dict}


def read(folder: str | os.PathLike[str] = "results") -> dict[str, Record]:
    """Digest -> record, of all files; a folder that is not there holds none."""
    found: dict[str, Record] = {}
    place = Path(folder)
    try:
        if place.exists() and not place.is_dir():
            raise UserError(f"{place} is a file, no folder of run records; choose another with --results")
        files = sorted(place.glob("*.jsonl")) if place.exists() else []
        for path in files:
            _merge_lines(found, _text(path), path)
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
            content = file.read()
            if torn := _torn(content):
                os.ftruncate(file.fileno(), len(content) - torn)
            _merge_lines(known, _decoded(content[: len(content) - torn], path), path)
            fresh = _new_part(known.get(record["digest"]), record)
            if fresh is None:
                return False
            _checked(fresh)  # a line that `read` would refuse is not written
            _append(file, json.dumps(_plain(fresh), sort_keys=True, separators=(",", ":"), allow_nan=False))
            return True
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"this is not a run record ({error}); train the run again") from None
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
    datasets = record.get("datasets") if isinstance(record, dict) else None
    first = datasets[0] if isinstance(datasets, list) and datasets else {}
    name = first.get("equation") if isinstance(first, dict) else None
    return plain_name(name or "imported", "the equation of a record")


# --- lines --------------------------------------------------------------------------------------------------------
def _text(path: Path) -> str:
    content = path.read_bytes()
    return _decoded(content[: len(content) - _torn(content)], path)


def _torn(content: bytes) -> int:
    """Bytes at the end that begin a line: its writer is at it, or was killed, and then its run is collected anew."""
    last = content[content.rfind(b"\n") + 1 :]
    try:
        json.loads(last or b"null")
    except (ValueError, RecursionError):
        return len(last)
    return 0


def _decoded(content: bytes, path: Path) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UserError(f"{path}, line {line}, is not a run record (it is no text); take the line out") from None


def _merge_lines(found: dict[str, Record], text: str, path: Path) -> None:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = _checked(loads(line))
        except ValueError as error:
            raise UserError(f"{path}, line {number}, is not a run record ({error}); take the line out") from None
        known = found.get(record["digest"])
        if known is None and "datasets" in record:  # else a later line of a record that was taken out
            found[record["digest"]] = record
        elif known is not None:
            for block in BLOCKS:
                for label, value in record.get(block, {}).items():
                    known.setdefault(block, {}).setdefault(label, value)
            if record.get("alone"):
                known |= {"alone": True, "inference_ms": record["inference_ms"]}


def sound(record: Any) -> bool:
    """Whether tables can take it; what `read` gives back always is."""
    try:
        return bool(_checked(record))
    except ValueError:
        return False


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
    for block in BLOCKS:
        if not isinstance(record.get(block, {}), dict):
            raise ValueError(f"its {block} is {record[block]!r}")
    _check_values(record)
    return record


def _check_values(record: Record) -> None:
    """What tables calculate with: numbers where numbers are meant, or null, or the words that `_plain` writes."""
    for key in _NUMBERS:
        if not _is_number(record.get(key)):
            raise ValueError(f"its {key} is {record[key]!r}")
    for key in ("counts", "provenance", "options"):
        if not isinstance(record.get(key, {}), dict):
            raise ValueError(f"its {key} is {record[key]!r}")
    if not isinstance(record.get("counts", {}).get("parameters", 0), int):
        raise ValueError(f"its counts are {record['counts']!r}")
    if "datasets" in record and not isinstance(record["datasets"][0].get("fields", {}), dict):
        raise ValueError("its dataset has no fields")
    if record.get("alone") and not isinstance(record.get("inference_ms"), int | float):
        raise ValueError("it has no time")
    for home in (record, *record.get("shifts", {}).values()):
        if not isinstance(home, dict):
            raise ValueError(f"one of its shifts is {home!r}")
        _check_scores(home.get("scores", {}), home.get("samples", {}))


def _check_scores(scores: Any, samples: Any) -> None:
    if not isinstance(scores, dict) or not isinstance(samples, dict):
        raise ValueError("its scores are none")
    for name, score in scores.items():
        if not isinstance(score, dict) or not all(map(_is_number, score.values())):
            raise ValueError(f"its score {name} is {score!r}")
    for name, values in samples.items():
        if not isinstance(values, list) or not all(map(_is_number, values)):
            raise ValueError(f"its samples of {name} are no numbers")


def _is_number(value: Any) -> bool:
    """Whether float() takes it, or it is null."""
    if isinstance(value, str):
        return value in _WORDS
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _new_part(known: Record | None, record: Record) -> Record | None:
    if known is None:
        return record
    fresh: Record = {}
    for block in BLOCKS:
        if new := {k: v for k, v in record.get(block, {}).items() if k not in known.get(block, {})}:
            fresh[block] = new
    if record.get("alone") and not known.get("alone"):
        fresh |= {"alone": True, "inference_ms": record["inference_ms"]}
    return {key: record[key] for key in ("version", "digest", "name", "model")} | fresh if fresh else None


def _without_links(path: str, flags: int) -> int:
    """Results from elsewhere may hold links; what they lead to is not written to."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o644)


@contextmanager
def _locked(path: Path) -> Iterator[Any]:
    with open(path, "a+b", opener=_without_links) as file:
        lock_exclusive(file)
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
