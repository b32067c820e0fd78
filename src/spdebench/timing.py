"""Timing of work on a device."""

from __future__ import annotations

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


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Inside, torch computes with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
