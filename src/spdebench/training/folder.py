"""The files of a run's folder. One process at a time may write there, and each file is written atomically."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from spdebench import spec
from spdebench.engines.locks import locked as locked
from spdebench.errors import Damaged, UserError
from spdebench.files import MOST_LINES, read_text, sync_file, write_text
from spdebench.records import Record


def is_run(folder: str | Path) -> bool:
    """Whether a path is the folder of a run."""
    return (Path(folder) / "spec.json").is_file()


def checkpoint_file(folder: Path, name: str) -> Path:
    """``name.safetensors``, or ``name.pt`` if only a file of an earlier version is there."""
    new, old = folder / f"{name}.safetensors", folder / f"{name}.pt"
    return old if old.exists() and not new.exists() else new


def remove_partial_files(folder: Path) -> None:
    """Remove the half-written files of a killed process; to be called under the lock."""
    for path in folder.glob(".*.tmp"):
        if path.is_symlink() or path.is_file():  # a link is removed, not the file that it points to
            path.unlink(missing_ok=True)


def remove_file(path: Path) -> None:
    """Remove a file if it is there; an error is one line."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"cannot remove {path} ({error.strerror}); remove it yourself") from None


class Log:
    """`log.jsonl`: one line per epoch. A resumed run first rewrites it up to the checkpoint, so that both agree."""

    def __init__(self, path: Path, entries: list[dict[str, Any]]) -> None:
        self.path = path
        write_text(path, "".join(_line(entry) for entry in entries))

    def add(self, entry: dict[str, Any]) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_line(entry))
        except OSError as error:
            raise UserError(f"cannot write {self.path} ({error.strerror}); finished work is kept") from None

    def close(self) -> None:
        """Wait until all lines are on the disk."""
        try:
            sync_file(self.path)
        except OSError as error:
            raise UserError(f"cannot write {self.path} ({error.strerror}); finished work is kept") from None


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry) + "\n"


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines written so far; a last line that is incomplete is left out."""
    if not path.exists():
        return []
    out = []
    try:
        for line in read_text(path, MOST_LINES).splitlines():
            entry = spec.loads(line, allow_nan=True)  # a run that diverged
            if not isinstance(entry, dict) or not isinstance(entry.get("epoch"), int):
                break
            out.append(entry)
    except (OSError, ValueError):
        pass
    return out


def read_json(path: Path) -> Any:
    """The content of a JSON file; an error is one line that says what to do."""
    try:
        return spec.loads(read_text(path))
    except FileNotFoundError:
        raise UserError(f"{path} is not there; train the run again") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error}); train the run again") from None
    except ValueError as error:
        raise Damaged(f"{path} cannot be read ({error}); train the run again") from None


def read_record(path: Path) -> Record:
    """The record in a run's folder."""
    values = read_json(path)
    try:
        return Record.from_dict(values)
    except UserError as error:
        raise Damaged(f"{path} is not a run record ({error}); train the run again") from None


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")
