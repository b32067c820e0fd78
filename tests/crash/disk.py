"""A disk that fails at one call: every call that changes files in a folder is counted, and one of them is disturbed.

The functions of `os` and `open` are replaced in this process, which must be a child that does nothing else afterwards.
A power cut is worked out from what was synced: the content of a file is what it was when it was last synced, and the
names in a folder are those when the folder was last synced (`names lost`), or all of them (`names kept`, as journals of
some file systems do). A file that was never synced is empty.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODES = ("kill", "torn write", "EIO", "ENOSPC", "power cut, names lost", "power cut, names kept")
KILLED = 137
_REAL = {name: getattr(os, name) for name in ("open", "write", "pwrite", "ftruncate", "replace", "rename", "unlink")}
_REAL |= {name: getattr(os, name) for name in ("remove", "mkdir", "rmdir", "fsync")}
_OPEN = io.open


class Disk:
    """Counts the modifying calls in ``root`` and disturbs number ``at`` in the way ``mode``; ``log`` names them."""

    def __init__(self, root: Path, mode: str = "", at: int = -1) -> None:
        self.root, self.mode, self.at = os.path.realpath(root), mode, at
        self.log: list[str] = []
        self.full = False
        self.content: dict[int, bytes] = {}
        self.names: dict[int, dict[str, tuple[bool, int]]] = {}
        for place, _, files in os.walk(self.root):  # what was there before is on the disk
            self._synced_folder(place)
            for name in files:
                self._synced_file(os.path.join(place, name))

    # --- what is on the disk ------------------------------------------------------------------------------------------
    def _synced_folder(self, folder: str) -> None:
        entries = {e.name: (e.is_dir(follow_symlinks=False), e.inode()) for e in os.scandir(folder)}
        self.names[os.stat(folder).st_ino] = entries

    def _synced_file(self, path: str) -> None:
        with _OPEN(path, "rb") as file:
            self.content[os.stat(path).st_ino] = file.read()

    def after_power_cut(self, target: Path) -> None:
        """Write the folder as it is found after the power cut to ``target``."""
        self._rebuild(os.stat(self.root).st_ino, self.root, target)

    def _rebuild(self, inode: int, now: str, target: Path) -> None:
        _REAL["mkdir"](target)
        if self.mode.endswith("kept"):
            entries = {e.name: (e.is_dir(follow_symlinks=False), e.inode()) for e in os.scandir(now)}
        else:
            entries = self.names.get(inode, {})
        for name, (folder, inner) in entries.items():
            if folder:
                self._rebuild(inner, os.path.join(now, name), target / name)
            else:
                with _OPEN(target / name, "wb") as file:
                    file.write(self.content.get(inner, b""))

    # --- calls --------------------------------------------------------------------------------------------------------
    def install(self) -> None:
        """Replace the functions of this process."""
        names = {"replace": 2, "rename": 2, "unlink": 1, "remove": 1, "mkdir": 1, "rmdir": 1}
        for name in names:
            setattr(os, name, self._wrapped(name))
        for name in ("write", "pwrite", "ftruncate", "fsync"):
            setattr(os, name, self._wrapped_on_descriptor(name))
        os.open = self._os_open  # type: ignore[assignment]
        io.open = builtins.open = self._open  # type: ignore[assignment]

    def inside(self, path: Any, dir_fd: int | None = None) -> bool:
        if isinstance(path, int):
            where = os.readlink(f"/proc/self/fd/{path}")
        else:
            text = os.fsdecode(path)
            base = os.readlink(f"/proc/self/fd/{dir_fd}") if dir_fd is not None else os.getcwd()
            where = os.path.normpath(os.path.join(base, text))
        return where == self.root or where.startswith(self.root + os.sep)

    def point(self, call: str, torn: Callable[[], object] | None = None, grows: bool = True) -> None:
        """Note a call, and disturb it if it is the one; ``torn`` does half of it."""
        number = len(self.log)
        self.log.append(call)
        if self.full and grows:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if number != self.at:
            return
        if self.mode == "EIO":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if self.mode == "ENOSPC":
            if grows:
                self.full = True
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return
        if self.mode == "torn write":
            if torn is None:
                return
            torn()
        if self.mode.startswith("power cut"):
            self.after_power_cut(Path(f"{self.root}.after"))
        os._exit(KILLED)

    def _wrapped(self, name: str) -> Callable[..., Any]:
        real = _REAL[name]

        def call(*arguments: Any, **named: Any) -> Any:
            if self.inside(arguments[0], named.get("dir_fd")):
                self.point(f"{name} {os.path.basename(os.fsdecode(arguments[0]))}", grows=name == "mkdir")
            return real(*arguments, **named)

        return call

    def _wrapped_on_descriptor(self, name: str) -> Callable[..., Any]:
        real = _REAL[name]

        def call(descriptor: int, *rest: Any) -> Any:
            if not self.inside(descriptor):
                return real(descriptor, *rest)
            self.point(name, grows=name in ("write", "pwrite"))
            result = real(descriptor, *rest)
            if name == "fsync":
                path = f"/proc/self/fd/{descriptor}"
                folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
                (self._synced_folder if folder else self._synced_file)(path)
            return result

        return call

    def _os_open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if not flags & (os.O_CREAT | os.O_TRUNC) or not self.inside(path, dir_fd):
            return int(_REAL["open"](path, flags, mode, dir_fd=dir_fd))
        self.point(f"create {os.path.basename(os.fsdecode(path))}")
        return self._created(int(_REAL["open"](path, flags, mode, dir_fd=dir_fd)))

    def _created(self, descriptor: int) -> int:
        if os.fstat(descriptor).st_size == 0 and not self._known(descriptor):
            self.content.pop(os.fstat(descriptor).st_ino, None)  # the number of a removed file is used again
        return descriptor

    def _known(self, descriptor: int) -> bool:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        parent = self.names.get(os.stat(os.path.dirname(path)).st_ino, {})
        return os.path.basename(path) in parent

    def _open(self, file: Any, mode: str = "r", *rest: Any, **named: Any) -> Any:
        changes = isinstance(file, str | bytes | os.PathLike) and any(c in mode for c in "wax+")
        if not changes or not self.inside(file):
            return _OPEN(file, mode, *rest, **named)
        self.point(f"open {os.path.basename(os.fsdecode(file))}")
        kind = mode.replace("b", "").replace("t", "")
        raw = _Raw(self, file, kind if "+" in kind else f"{kind}+", opener=named.get("opener"))
        self._created(raw.fileno())
        if named.get("buffering") == 0:
            return raw
        buffered = io.BufferedRandom(raw)
        if "b" in mode:
            return buffered
        return io.TextIOWrapper(buffered, encoding=named.get("encoding") or "utf-8")


class _Raw(io.FileIO):
    """A file whose writes are calls to the disk."""

    def __init__(self, disk: Disk, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.disk = disk

    def write(self, data: Any) -> int:
        block = bytes(data)
        self.disk.point("write", torn=lambda: super(_Raw, self).write(block[: len(block) // 2]))
        return super().write(block)
