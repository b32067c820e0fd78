"""How work in progress ends: by the clock, by an interrupt, or because the process that started it was killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing import connection
from types import FrameType

FOREVER = float("inf")


class OutOfTime(BaseException):
    """The budget is used up; no error, so that nothing that handles errors stops it."""


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """`OutOfTime` at the deadline; only a process's main thread can be told so, others are asked between runs."""
    if deadline == FOREVER or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(1e-3, deadline - time.time()))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def interrupt_reaches_workers(workers: int) -> Iterator[None]:
    """An interrupt sent to this process alone ends its workers too: training goes on from its last checkpoint."""
    if workers == 1 or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        for process in multiprocessing.active_children():
            process.terminate()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@cache
def end_with_parent() -> None:
    """In a worker: if the process that started it is killed, do not stay behind on the device."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
