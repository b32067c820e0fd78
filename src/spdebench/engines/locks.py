"""Locks on folders: one process at a time works in a folder.

The operating system drops a lock when its process ends, however it ends, so that no lock is ever stale. The file
``lock`` in the folder names the process that has it.
"""

from __future__ import annotations

import json
import os
import socket
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spdebench.errors import UserError
from spdebench.file_locks import NO_LINK, check_lock, try_lock
from spdebench.files import make_folder, read_bytes
from spdebench.spec import loads

PAUSE = 0.2  # seconds between two attempts to lock a folder; the second comes sooner


@contextmanager
def locked(folder: Path, *, quiet: bool = False) -> Iterator[None]:
    """Lock the folder inside the context. If another process has it, warn in a line (unless ``quiet``) and wait."""
    path = folder / "lock"
    descriptor, tries = _opened(path), 0
    try:
        while not try_lock(descriptor) or not _still_there(descriptor, path):
            if not _still_there(descriptor, path):  # its last holder has removed the folder
                os.close(descriptor)
                descriptor = _opened(path)
                continue
            tries += 1
            if tries == 2 and not quiet:  # not at the first try: a process that only checks has the lock for an instant
                warnings.warn(f"{folder.name} is in progress ({_holder(path)}); waiting for it", stacklevel=3)
            time.sleep(PAUSE if tries > 1 else PAUSE / 4)
        check_lock(descriptor, path)
        _note(descriptor, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        try:
            yield
        finally:
            _note(descriptor, "")
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    """The descriptor of the lock file, which is created with its folder if it does not exist."""
    try:
        make_folder(path.parent)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | NO_LINK, 0o644)
    except OSError as error:
        raise UserError(
            f"cannot write into {path.parent} ({error.strerror}); choose another folder with --out"
        ) from None


def _still_there(descriptor: int, path: Path) -> bool:
    """Whether the open file is the one of this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


def holder_of(folder: Path) -> str:
    """The process that has the folder now, as text (``process 12 on node3``); empty if none has."""
    path = folder / "lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | NO_LINK)
    except OSError:
        return ""
    try:
        return "" if try_lock(descriptor, shared=True) else _holder(path)
    finally:
        os.close(descriptor)


def _note(descriptor: int, text: str) -> None:
    """Write into the lock file who holds the lock."""
    with suppress(OSError):  # the note is informative only; a full disk must not stop a run here
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)


def _holder(path: Path) -> str:
    """The process that has the lock, as text."""
    try:
        note = loads(read_bytes(path, 4096))
        return f"process {note['pid']} on {note['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
