"""A worker process of this machine: one thread, and no longer than it is wanted."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing import connection
from types import FrameType
from typing import Any

import torch

from spdebench.engines.memory import keep_freed_memory


class _Stop(BaseException):
    """The engine ends this worker; no error, so that nothing that handles errors stops it."""


_busy = False


def start() -> None:
    """What a worker does first."""
    torch.set_num_threads(1)
    keep_freed_memory()
    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the engine is interrupted, and ends its workers
    end_with_parent()


def call(work: Callable[[Any], Any], unit: Any) -> Any:
    """``work(unit)``; if the worker is ended meanwhile, what the unit has opened is closed and removed first."""
    global _busy
    _busy = True
    try:
        return work(unit)
    except _Stop:
        os._exit(1)
    finally:
        _busy = False


def _terminated(number: int, frame: FrameType | None) -> None:
    if not _busy:
        os._exit(1)
    raise _Stop


def end_with_parent() -> None:
    """If the process that started this one is killed, do not stay behind."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
