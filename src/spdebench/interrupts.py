"""Ctrl-C, TERM and HUP end a command in the same way: by `KeyboardInterrupt`, so that it cleans up and says so.

A second signal ends the process at once: what it leaves half-written is removed by the next command. While the
interpreter shuts down, signals are ignored: Python restores the default handlers there, and a signal would replace the
exit code of the command by its own.
"""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Callable
from types import FrameType

_first: int | None = None


def install() -> None:
    """Handle the signals from now on; those that are ignored (``nohup``) stay ignored."""
    atexit.register(_handle, signal.SIG_IGN)  # registered before all others, so it is called after them
    _handle(_interrupt)


def exit_code() -> int:
    """128 and the number of the signal, as shells count; that of Ctrl-C if there was none."""
    return 128 + (_first or signal.SIGINT)


def _handle(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _first
    if _first is not None:
        os._exit(exit_code())
    _first = number
    raise KeyboardInterrupt
