"""Files that are written whole or not at all, names that stay in their folder, and locks between processes."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from spdebench.errors import UserError

_RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{k}" for port in ("com", "lpt") for k in range(10))}


def plain_name(name: object, what: str) -> str:
    """``name``, if it is a valid file name on every system: without folders, not hidden, reserved or too long."""
    if not isinstance(name, str) or not name.isprintable() or any(c in name for c in '/\\:*?"<>|'):
        raise UserError(f"{what} must be a file name without folders or signs such as : * ?, got {name!r}")
    if name.strip(" .") != name or name.partition(".")[0].lower() in _RESERVED or not 0 < len(name.encode()) <= 200:
        raise UserError(f"{what} cannot name a file (hidden, reserved, empty or too long), got {name!r}")
    return name


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to ``path`` that replaces it at the end; after an error no file is left."""
    temporary = path.with_name(
        f".{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.tmp"
    )  # pids repeat on other machines
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(f"cannot write {path} ({error.strerror or error}); choose another place") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


# --- locks ----------------------------------------------------------------------------------------------------------
def lock_exclusive(file: int | IO[Any]) -> None:
    """Wait until the open file is locked by this process; closing the file, or the end of the process, unlocks it."""
    _flock(file, "LOCK_EX")


def try_lock(file: int | IO[Any], *, shared: bool = False) -> bool:
    """Lock the open file if no other process has locked it (``shared``: for writing); False if one has."""
    return _flock(file, "LOCK_SH" if shared else "LOCK_EX", "LOCK_NB")


def _flock(file: int | IO[Any], *flags: str) -> bool:
    try:
        import fcntl
    except ImportError:
        raise UserError("this system has no file locks, which keep processes apart; use Linux, macOS or WSL") from None
    try:
        fcntl.flock(file, sum(getattr(fcntl, flag) for flag in flags))
    except BlockingIOError:
        return False
    except OSError:  # the file system has no locks: nothing keeps two processes apart there
        return True
    return True
