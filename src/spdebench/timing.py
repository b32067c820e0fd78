"""Timing of work on a device."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

T = TypeVar("T")


def wait_for_device(device: torch.device | str) -> None:
    """Return when a CUDA device has finished all queued work; at once for a processor."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


def timed(work: Callable[[], T], device: torch.device | str = "cpu") -> tuple[T, float]:
    """The result of ``work`` and its time in seconds; waits for the device before and after."""
    wait_for_device(device)
    start = time.perf_counter()
    out = work()
    wait_for_device(device)
    return out, time.perf_counter() - start


def best_of(work: Callable[[], T], repeats: int, device: torch.device | str = "cpu") -> tuple[T, float]:
    """The last result, and the shortest of ``repeats`` times in seconds."""
    runs = [timed(work, device) for _ in range(repeats)]
    return runs[-1][0], min(seconds for _, seconds in runs)


def median_time(
    work: Callable[[], object], most_repeats: int, device: torch.device | str = "cpu", *, least_repeats: int = 1
) -> float:
    """The median time of ``work`` in seconds, repeated for about half a second after a warm-up.

    There are at most ``most_repeats`` repeats, and at least ``least_repeats`` unless they take more than five seconds.
    """
    timed(work, device)
    times: list[float] = []
    while len(times) < most_repeats and not (sum(times) > 0.5 and (len(times) >= least_repeats or sum(times) > 5)):
        times.append(timed(work, device)[1])
    return statistics.median(times)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """A context in which torch computes with ``count`` threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
