"""A worker process on this machine: it computes with one thread and ends with the process that started it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

from spdebench.engines.memory import keep_freed_memory


class _Stop(BaseException):
    """The engine ends this worker. It is no `Exception`, so that code that handles errors does not catch it."""


_busy = False


BEAT = 1.0
"""Seconds between two heartbeats of a worker."""


def start(end_signal: Connection, heartbeats: Any = None, interval: float = BEAT) -> None:
    """Prepare this process for work. It ends with its parent process, or if the other end of ``end_signal`` is closed.

    ``heartbeats`` is memory shared with the engine: this worker increases a counter next to its process number as
    long as it runs.
    """
    import torch  # slow to import

    torch.set_num_threads(1)
    keep_freed_memory()
    signal.signal(signal.SIGTERM, _terminated)
    for number in (signal.SIGINT, signal.SIGHUP):  # the engine is interrupted, and ends its workers
        signal.signal(number, signal.SIG_IGN)
    end_with_parent(end_signal)
    if heartbeats is not None:
        threading.Thread(target=_beat, args=(heartbeats, interval), daemon=True).start()


def _beat(heartbeats: Any, interval: float) -> None:
    """Take the first free pair of (process number, count), and count."""
    with heartbeats.get_lock():
        place = next((k for k in range(0, len(heartbeats), 2) if not heartbeats[k]), None)
        if place is None:
            return
        heartbeats[place] = os.getpid()
    counts = heartbeats.get_obj()
    while True:
        counts[place + 1] += 1  # not locked: a stopped worker might have the lock
        time.sleep(interval)


def call(work: Callable[[Any], Any], unit: Any) -> Any:
    """``work(unit)``; if the worker is ended meanwhile, the unit first removes its half-written files."""
    global _busy
    _busy = True
    try:
        return work(unit)
    except _Stop:
        os._exit(1)
    finally:
        _busy = False


def _terminated(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM: an idle worker ends at once, a busy one raises `_Stop` in its unit."""
    if not _busy:
        os._exit(1)
    raise _Stop


def end_with_parent(end_signal: Connection) -> None:
    """End at once if the parent process is killed; end as after SIGTERM if the other end of ``end_signal`` closes."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        if parent.sentinel not in connection.wait([parent.sentinel, end_signal]):
            os.kill(os.getpid(), signal.SIGTERM)
            connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
