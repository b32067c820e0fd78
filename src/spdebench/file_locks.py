"""Locks on open files, which keep processes apart."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

from spdebench.errors import UserError

NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""Flag of `os.open` that refuses a symbolic link, which may lead out of the folder; 0 on systems without it."""


def lock_exclusive(file: int | IO[Any]) -> None:
    """Wait until the open file is locked by this process; closing the file, or the end of the process, unlocks it."""
    _flock(file, "LOCK_EX")


def try_lock(file: int | IO[Any], *, shared: bool = False) -> bool:
    """Lock the open file if no other process has locked it (``shared``: for writing); False if one has."""
    return _flock(file, "LOCK_SH" if shared else "LOCK_EX", "LOCK_NB")


def check_lock(descriptor: int, path: Path) -> None:
    """Refuse a file system on which two processes can have the same lock: try to lock a locked file once more."""
    other = os.open(path, os.O_RDWR | NO_LINK)
    try:
        if os.path.sameopenfile(descriptor, other) and try_lock(other):
            raise _no_locks("a second process would get the same lock")
    finally:
        os.close(other)


def _no_locks(why: str) -> UserError:
    """The error for a file system without working locks."""
    return UserError(
        f"file locks do not work in this folder ({why}); without them two processes would spoil each other's files: "
        f"use a folder on a file system with flock (a local disk, or NFS 4)"
    )


def _flock(file: int | IO[Any], *flags: str) -> bool:
    """Call flock with these flags; False if another process has the lock and LOCK_NB is among the flags."""
    try:
        import fcntl
    except ImportError:
        raise UserError("this system has no file locks, which keep processes apart; use Linux, macOS or WSL") from None
    try:
        fcntl.flock(file, sum(getattr(fcntl, flag) for flag in flags))
    except BlockingIOError:
        return False
    except OSError as error:
        raise _no_locks(error.strerror or str(error)) from None
    return True
