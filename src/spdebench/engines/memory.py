"""Memory of a process that makes and drops arrays of a few hundred kilobytes all the time."""

from __future__ import annotations

import ctypes
import sys


def keep_freed_memory() -> None:
    """Ask glibc to keep freed memory instead of giving it back page by page: steps on such arrays get up to 2x faster.

    For commands and workers, whose process is ours; a library call leaves the caller's process alone.
    """
    if sys.platform != "linux":
        return
    try:
        libc = ctypes.CDLL("libc.so.6")
        trim_threshold, mmap_threshold = -1, -3
        libc.mallopt(trim_threshold, 1 << 30)
        libc.mallopt(mmap_threshold, 1 << 30)
    except (OSError, AttributeError):
        return
