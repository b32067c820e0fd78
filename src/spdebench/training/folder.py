"""The files of a run's folder: one process at a time may write there, and what it writes appears whole."""

from __future__ import annotations

import json
import os
import socket
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spdebench.errors import UserError
from spdebench.files import write_text


@contextmanager
def locked(folder: Path, *, pause: float = 0.2) -> Iterator[None]:
    """Within it the folder is this process's alone; who comes second says so in a line and waits.

    The system holds the lock and drops it with its process, however that ends, so that no lock is ever stale; the file
    says who has it.
    """
    path = folder / "lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UserError(f"cannot write into {folder} ({error.strerror}); choose another folder with --out") from None
    try:
        said = False
        while not _try_lock(descriptor):
            if not said:
                said = True
                warnings.warn(f"{folder.name} is in progress ({_holder(path)}); waiting for it", stacklevel=3)
            time.sleep(pause)
        _note(descriptor, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        try:
            yield
        finally:
            _note(descriptor, "")
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:  # a system without such locks: runs are its user's to keep apart
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _note(descriptor: int, text: str) -> None:
    with suppress(OSError):  # it is for people; a full disk must not stop a run that has little left to write
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)


def _holder(path: Path) -> str:
    try:
        note = json.loads(path.read_text())
        return f"process {note['pid']} on {note['host']}"
    except (OSError, ValueError, KeyError):
        return "another process"


def sweep_up(folder: Path) -> None:
    """Remove what a killed process left half-written; only under the lock."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


class Log:
    """`log.jsonl`: a line an epoch. On going on it is written anew up to the checkpoint, so that both agree."""

    def __init__(self, path: Path, entries: list[dict[str, Any]]) -> None:
        self.path = path
        write_text(path, "".join(_line(entry) for entry in entries))

    def add(self, entry: dict[str, Any]) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_line(entry))
        except OSError as error:
            raise UserError(f"cannot write {self.path} ({error.strerror}); what is finished is kept") from None


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry) + "\n"


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines written so far; a last one cut short by a kill is left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    out = []
    for line in lines:
        try:
            out.append(json.loads(line))
        except ValueError:
            break
    return out


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} is not there") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); train the run again") from None


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")
