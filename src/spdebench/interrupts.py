"""Ctrl-C, TERM and HUP end a command at any moment in the same way, with one line and no traceback.

While the command is imported, nothing has begun, and the process ends at once. While it works, a signal raises
`KeyboardInterrupt`, so that it cleans up and prints a line; a second signal ends the process at once, and the next
command removes its half-written files. When the command has ended, signals are ignored: Python restores their default
handlers while it shuts down, and a signal would replace the exit code of the command by its own.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

_first: int | None = None


def end_at_once() -> None:
    """From now on a signal ends the process with one line; signals that are ignored (``nohup``) stay ignored."""
    _handle(_end)


def raise_interrupt() -> None:
    """From now on the first signal raises `KeyboardInterrupt`."""
    sys.unraisablehook = _raise_again
    _handle(_interrupt)


def ignore() -> None:
    """From now on signals do nothing."""
    _handle(signal.SIG_IGN)


def exit_code() -> int:
    """128 and the number of the signal, as shells count; that of Ctrl-C if there was none."""
    return 128 + (_first or signal.SIGINT)


def _handle(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Set the handler of SIGINT, SIGTERM and SIGHUP, except those that the process was told to ignore."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"\ninterrupted before anything was done\n")
    os._exit(128 + number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt at the first signal, and end the process at the second."""
    global _first
    if _first is not None:
        os._exit(exit_code())
    _first = number
    raise KeyboardInterrupt


def _raise_again(lost: sys.UnraisableHookArgs) -> None:
    """Send an interrupt again that Python has dropped, because it was raised while an object was deleted."""
    global _first
    if _first is None or not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    number, _first = _first, None

    def send() -> None:
        time.sleep(0.01)  # by then the object is deleted
        os.kill(os.getpid(), number)

    threading.Thread(target=send, daemon=True).start()
