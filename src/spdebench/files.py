"""Atomic writing of files and folders that survive a power cut, safe reading, and free disk space.

A file is written under a temporary name, synced, renamed, and its folder is synced. The writer has a lock on the
temporary file, so that the next writer can recognise the files of a killed process and remove them.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import uuid
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spdebench.errors import DamagedWarning, UserError
from spdebench.file_locks import NO_LINK, check_lock, lock_exclusive, try_lock

_RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{k}" for port in ("com", "lpt") for k in range(10))}
_UNSYNCABLE = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES)  # of folders, on some file systems


def plain_name(name: object, what: str) -> str:
    """``name``, if it is a valid file name on every system: without folders, not hidden, reserved or too long."""
    if not isinstance(name, str) or not name.isprintable() or any(c in name for c in '/\\:*?"<>|'):
        raise UserError(f"{what} must be a file name without folders or signs such as : * ?, got {name!r}")
    if name.strip(" .") != name or name.partition(".")[0].lower() in _RESERVED or not 0 < len(name.encode()) <= 200:
        raise UserError(f"{what} cannot name a file (hidden, reserved, empty or too long), got {name!r}")
    return name


# --- reading --------------------------------------------------------------------------------------------------------
MOST_JSON = 64 << 20
"""The most bytes that a JSON file may have; those of a run have about 100 kB."""
MOST_LINES = 1 << 30
"""The most bytes that a log or a file of run records (about 4 kB each) may have."""


def read_bytes(path: Path, max_bytes: int = MOST_JSON) -> bytes:
    """The content of a regular file of at most ``max_bytes`` bytes. OSError: it is a pipe, a device, or too large."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # opening a pipe would wait for a writer
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        _check_regular(found, path, max_bytes)
        try:
            return file.read(found.st_size)
        except MemoryError:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM), str(path)) from None


def read_text(path: Path, max_bytes: int = MOST_JSON) -> str:
    """The text of a regular file of at most ``max_bytes`` bytes in UTF-8. ValueError: it is not text."""
    return read_bytes(path, max_bytes).decode()


def user_text(path: Path, max_bytes: int = MOST_JSON) -> str:
    """`read_text` of a file that a user named: a one-line error if it cannot be read or is not text."""
    try:
        return read_text(path, max_bytes)
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a text file in UTF-8") from None
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror or error})") from None


def check_regular(path: Path, max_bytes: int | None = None) -> None:
    """Raise OSError unless the path is a regular file (of at most ``max_bytes``): a pipe or a device may never end."""
    _check_regular(os.stat(path), path, max_bytes)


def _check_regular(found: os.stat_result, path: Path, max_bytes: int | None) -> None:
    """`check_regular` for a file whose status is known."""
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    if max_bytes is not None and found.st_size > max_bytes:
        raise OSError(errno.EFBIG, f"it has {found.st_size} bytes, more than {max_bytes}", str(path))


# --- writing --------------------------------------------------------------------------------------------------------
@contextmanager
def replacing(path: Path, durable: bool = True) -> Iterator[Path]:
    """Yield a temporary path next to ``path`` that replaces it at the end; after an error no file is left.

    When the context ends without an error, the file survives a power cut (unless it need not be ``durable``).
    """
    temporary, held = path, -1
    try:
        make_folder(path.parent)
        remove_leftovers(path)
        temporary, held = _new_temporary(path)
        yield temporary
        if durable:
            os.fsync(held)
            put_in_place(temporary, path)
        else:
            os.replace(temporary, path)
    except OSError as error:
        raise UserError(f"cannot write {path} ({error.strerror or error}); choose another place") from None
    finally:
        if held >= 0:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            os.close(held)


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder that replaces ``folder`` at the end; after an error the old one is unchanged.

    For a moment neither exists. When the context ends without an error, the new one survives a power cut. An OSError
    is passed on.
    """
    make_folder(folder.parent)
    remove_leftovers(folder)
    fresh = folder.with_name(_temporary_name(folder))
    fresh.mkdir()
    old = fresh.with_suffix(".old.tmp")
    with _locked_folder(fresh):
        try:
            yield fresh
            sync_tree(fresh)
            if folder.exists():
                with _locked_folder(folder):
                    os.rename(folder, old)
                    try:
                        put_in_place(fresh, folder)
                    except OSError:
                        os.rename(old, folder)
                        raise
                    shutil.rmtree(old, ignore_errors=True)
            else:
                put_in_place(fresh, folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


@contextmanager
def new_folder(folder: Path, overwrite: bool, known: Collection[str]) -> Iterator[Path]:
    """Yield a folder that becomes ``folder`` at the end, which must not exist unless ``overwrite``.

    Only a folder whose files all have ``known`` names, or match such patterns, is replaced. This is `replacing_folder`
    with one-line errors.
    """
    if folder.is_symlink() or (folder.exists() and not (overwrite and folder.is_dir())):
        raise UserError(f"{folder} already exists; choose another --out, or replace a folder with --overwrite")
    for path in sorted(folder.rglob("*")) if folder.exists() else ():
        if not path.is_dir() and not any(path.match(name) for name in known):
            raise UserError(f"{folder} is not replaced, because {path} would be lost; choose another --out")
    try:
        with replacing_folder(folder) as fresh:
            yield fresh
    except OSError as error:
        raise UserError(f"cannot write {folder} ({error.strerror or error}); choose another place") from None


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """Lock the folder itself inside the context, if the file system supports it."""
    descriptor = os.open(folder, os.O_RDONLY | NO_LINK)
    try:
        with suppress(UserError):
            try_lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str, durable: bool = True) -> None:
    """Write a text file atomically."""
    with replacing(path, durable) as temporary:
        temporary.write_text(text, encoding="utf-8")


def put_in_place(finished: Path, path: Path) -> None:
    """Rename a file or folder whose content is synced; the new name survives a power cut."""
    os.replace(finished, path)
    sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, so that they survive a power cut."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in reversed(missing):
        sync_folder(each.parent)


def sync_file(path: Path) -> None:
    """Wait until the content of a file is on the disk."""
    descriptor = os.open(path, os.O_RDONLY | NO_LINK)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, if the file system supports it."""
    try:
        sync_file(folder.resolve())
    except OSError as error:
        if error.errno not in _UNSYNCABLE:
            raise


def sync_tree(folder: Path) -> None:
    """Wait until a folder with everything in it is on the disk."""
    for place, _, names in os.walk(folder):
        for name in names:
            sync_file(Path(place, name))
        sync_folder(Path(place))


def set_aside(path: Path, what: str = "is empty or damaged") -> None:
    """Rename an empty or damaged file to ``NAME.damaged``, with a one-line warning; the caller makes it again."""
    target, number = path.with_name(f"{path.name}.damaged"), 1
    while target.exists() or target.is_symlink():
        number += 1
        target = path.with_name(f"{path.name}.damaged-{number}")
    try:
        put_in_place(path, target)
    except OSError as error:
        raise UserError(f"{path} is damaged and cannot be moved ({error.strerror}); remove it") from None
    warnings.warn(f"{path} {what}; it is kept as {target.name} and made again", DamagedWarning, 2)


# --- temporary files ------------------------------------------------------------------------------------------------
def _temporary_name(path: Path) -> str:
    return f".{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.tmp"  # process numbers repeat on other machines


def _new_temporary(path: Path) -> tuple[Path, int]:
    """A new file next to ``path``, and a descriptor with its lock, which lasts as long as the descriptor is open."""
    while True:
        temporary = path.with_name(_temporary_name(path))
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINK, 0o666)
        with suppress(UserError):  # without file locks nobody removes the files of others
            lock_exclusive(descriptor)
        if temporary.exists():  # otherwise another writer has removed it before it was locked
            return temporary, descriptor
        os.close(descriptor)


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files and folders next to ``path`` of processes that have died while they wrote it."""
    with suppress(OSError):
        prefix = f".{path.name}."
        for name in os.listdir(path.parent):
            if name.startswith(prefix) and name.endswith(".tmp"):
                _remove_if_dead(path.with_name(name))


def _remove_if_dead(temporary: Path) -> None:
    """Remove a temporary file or folder unless a running process has locked it."""
    with suppress(OSError, UserError):
        folder = stat.S_ISDIR(temporary.lstat().st_mode)
        descriptor = os.open(temporary, (os.O_RDONLY if folder else os.O_RDWR) | os.O_NONBLOCK | NO_LINK)
        try:
            kind = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(kind) and try_lock(descriptor):
                shutil.rmtree(temporary, ignore_errors=True)
            elif stat.S_ISREG(kind) and try_lock(descriptor):
                temporary.unlink()
        finally:
            os.close(descriptor)


def check_writable(folder: Path) -> None:
    """Raise OSError if no file can be created in a folder, and UserError if file locks do not work; no file remains."""
    probe = folder / "probe"
    remove_leftovers(probe)
    temporary, descriptor = _new_temporary(probe)
    try:
        lock_exclusive(descriptor)
        check_lock(descriptor, temporary)
    finally:
        temporary.unlink(missing_ok=True)
        os.close(descriptor)


# --- free space -----------------------------------------------------------------------------------------------------
def existing_part(folder: Path) -> Path:
    """The folder, or its nearest parent that exists."""
    return next(p for p in (folder, *folder.resolve().parents) if p.exists())


def check_free_disk(need: int, folder: Path, what: str, instead: str) -> None:
    """Raise an error if fewer than ``need`` bytes are free on the disk of a folder, which need not exist.

    ``what`` needs the space, and ``instead`` says what to do.
    """
    free = shutil.disk_usage(existing_part(folder)).free
    if need > free:
        sizes = f"{need / 1e9:,.2f} GB are needed in {folder}, {free / 1e9:,.2f} GB are free"
        raise UserError(f"{what}: {sizes}; {instead}")
