"""Progress of a generation, written into the folder of its chunks and read from there by ``spdebench status``.

    spec.json     the spec of the dataset
    rate.json     chunks made since the start, and the seconds that they took
    failed.json   the reason if the generation failed; removed when it is started again

These files are informative: which chunks are finished is decided by the chunks themselves.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from spdebench.data.identity import from_json
from spdebench.engines import holder_of
from spdebench.errors import UserError
from spdebench.files import read_text, write_text
from spdebench.spec import loads


def parts_folder(path: Path) -> Path:
    """The folder of the chunks of a file while it is being made."""
    return path.with_name(f".{path.stem}.parts")


class GenerationWatch:
    """A context around the generation of a file; `count` is called after each chunk."""

    def __init__(self, parts: Path, spec: str) -> None:
        self.parts, self.made, self._start = parts, 0, time.monotonic()
        self._write("spec.json", spec)
        self._write("rate.json", "{}")
        with suppress(OSError):
            (parts / "failed.json").unlink(missing_ok=True)

    def _write(self, name: str, text: str) -> None:
        with suppress(UserError):  # a full disk is reported when a chunk is written
            write_text(self.parts / name, text, durable=False)

    def __enter__(self) -> GenerationWatch:
        return self

    def count(self) -> None:
        self.made += 1
        self._write("rate.json", json.dumps({"chunks": self.made, "seconds": time.monotonic() - self._start}))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if isinstance(error, Exception):  # an interrupt is not a failure
            self._write("failed.json", json.dumps({"reason": f"{error}" or type(error).__name__}))


@dataclass(frozen=True)
class UnfinishedDataset:
    """A file that is being generated: finished chunks, all chunks, the working process, the reason of a failure,
    seconds left."""

    name: str
    done: int
    chunks: int
    holder: str
    failed: str
    seconds: float | None


def unfinished_datasets(folder: Path) -> list[UnfinishedDataset]:
    """All files of a folder whose generation has started and not ended."""
    found = (read_status(parts) for parts in sorted(folder.glob(".*.parts")))
    return [each for each in found if each is not None]


def read_status(parts: Path) -> UnfinishedDataset | None:
    """The status of one generation; None if it has ended meanwhile."""
    try:
        identity = from_json(read_text(parts / "spec.json"))
        done = sum(1 for _ in parts.glob("chunk-*.f4"))
    except (OSError, ValueError, UserError):
        return None
    rate, left = _read(parts / "rate.json"), identity.chunks - done
    seconds, chunks = (_number(rate.get(key)) for key in ("seconds", "chunks"))
    holder = holder_of(parts)
    return UnfinishedDataset(
        name=identity.file_name,
        done=done,
        chunks=identity.chunks,
        holder=holder,
        failed="" if holder else str(_read(parts / "failed.json").get("reason", "")),
        seconds=left * seconds / chunks if seconds and chunks else None,
    )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _read(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if the file is missing or damaged."""
    try:
        value = loads(read_text(path))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
