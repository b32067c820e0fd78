"""Memory of a process that makes and drops arrays of a few hundred kilobytes all the time."""

from __future__ import annotations

import ctypes
import gc
import sys
from pathlib import Path

import torch


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


def release(device: str) -> None:
    """Give a GPU's memory back that this process keeps for later: other processes share it."""
    if torch.device(device).type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()


def free_memory() -> int | None:
    """Bytes that processes may still take: of the machine, or of the control group if that has less; None: unknown."""
    available = _meminfo()
    limits = [value for value in (available, _group_free()) if value is not None]
    return min(limits) if limits else None


def _meminfo() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None


def _group_free() -> int | None:
    """What the control group's limit leaves; the files that it keeps in memory can be dropped and count as free."""
    for group, limit, usage in (
        ("/sys/fs/cgroup", "memory.max", "memory.current"),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        try:
            most, used = (int(Path(group, name).read_text()) for name in (limit, usage))
            stat = dict(line.split() for line in Path(group, "memory.stat").read_text().splitlines())
            return max(0, most - used + int(stat.get("inactive_file", 0)))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return None
