"""How much memory is free or was used, and settings for processes that allocate and free many arrays."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from contextlib import suppress
from pathlib import Path

from spdebench.errors import UserError


def keep_freed_memory() -> None:
    """Make glibc keep freed memory instead of returning it: steps on arrays of a few 100 kB get up to 2x faster.

    Commands and worker processes call this; library functions do not change the caller's process.
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
    """Return the GPU memory that torch keeps for later use, so that other processes can have it."""
    import torch  # slow to import

    if torch.device(device).type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out: that of Python, or those of torch for a GPU and for a CPU."""
    text = str(error)
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and ("DefaultCPUAllocator" in text or "can't allocate memory" in text))
    )


def free_memory() -> int | None:
    """Bytes that are free on the machine, or in the control group if that has fewer.

    If the free memory is unknown, the memory of the machine; None if that is unknown, too.
    """
    available = _kibibytes("/proc/meminfo", "MemAvailable:")
    limits = [value for value in (available, _group_free()) if value is not None]
    return min(limits) if limits else _physical_memory()


def check_free_memory(need: int, what: str, instead: str) -> None:
    """Raise an error if fewer than ``need`` bytes of main memory are free; without it the system kills the process.

    To be called before the memory is allocated. ``what`` needs the memory, and ``instead`` says what to do.
    """
    free = free_memory()
    if free is not None and need > free:
        sizes = f"{need / 1e9:,.1f} GB of memory are needed, {free / 1e9:,.1f} GB are free"
        raise UserError(f"{what}: {sizes}; {instead}")


def reset_peak_memory() -> None:
    """Let `peak_memory` start again from the memory that this process has now, where the system can do that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> int | None:
    """The most bytes that this process has had in memory since it began, or since `reset_peak_memory`; None if unknown.

    Linux has it in /proc. Its ``ru_maxrss`` is no less than the memory of the process that started this one.
    """
    if (peak := _kibibytes("/proc/self/status", "VmHWM:")) is not None:
        return peak
    try:
        import resource  # not on Windows
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _kibibytes(file: str, name: str) -> int | None:
    """The bytes on the line ``NAME  N kB`` of a file of the kernel; None if there is no such line."""
    try:
        lines = Path(file).read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))
    except (OSError, StopIteration, ValueError):
        return None


def _physical_memory() -> int | None:
    """The memory of the machine in bytes; None if it is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _group_free() -> int | None:
    """Bytes that the limit of the control group leaves; cached files count as free."""
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
