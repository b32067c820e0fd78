"""A folder that is one process's alone for a while.

The system holds the lock and drops it with its process, however that ends, so that no lock is ever stale; the file
``lock`` says who has it.
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
from spdebench.spec import loads

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # a lock that is a link would lead out of the folder


@contextmanager
def locked(folder: Path, *, pause: float = 0.2, quiet: bool = False) -> Iterator[None]:
    """Within it the folder is this process's alone; who comes second says so in a line (unless ``quiet``) and waits."""
    path = folder / "lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o644)
    except OSError as error:
        raise UserError(f"cannot write into {folder} ({error.strerror}); choose another folder with --out") from None
    try:
        tries = 0
        while not _try_lock(descriptor):
            tries += 1
            if tries == 2 and not quiet:  # the first time it may be somebody who only looks
                warnings.warn(f"{folder.name} is in progress ({_holder(path)}); waiting for it", stacklevel=3)
            time.sleep(pause if tries > 1 else min(pause, 0.05))
        _note(descriptor, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        try:
            yield
        finally:
            _note(descriptor, "")
    finally:
        os.close(descriptor)


def held(folder: Path) -> str:
    """Who has the folder now, for people (``process 12 on node3``); empty if nobody has."""
    path = folder / "lock"
    try:
        descriptor = os.open(path, os.O_RDWR | _NO_LINK)
    except OSError:
        return ""
    try:
        return "" if _try_lock(descriptor, shared=True) else _holder(path)
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, shared: bool = False) -> bool:
    try:
        import fcntl
    except ImportError:  # a system without such locks: runs are its user's to keep apart
        return True
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
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
        note = loads(path.read_text())
        return f"process {note['pid']} on {note['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
