"""How work in progress ends by the clock, and why a clock that jumps does no harm.

A machine's wall clock may be set while work goes on. So deadlines are kept on the clock that only ever goes forward.
That clock means nothing on another machine; there the wall clock must serve, but never for more than the whole budget.
Too early an end pauses a run at its checkpoint, and too late a one costs time: neither loses anything.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

FOREVER = float("inf")


class OutOfTime(BaseException):
    """The budget is used up; no error, so that nothing that handles errors stops it."""


@cache
def machine() -> str:
    """Names this machine since it was started: processes with the same name share a clock that goes forward."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class Deadline:
    """``seconds`` after the moment at which it was made, for this machine's processes and for others'."""

    seconds: float
    steady: float
    wall: float
    machine: str

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(seconds, time.monotonic() + seconds, time.time() + seconds, machine())

    @property
    def left(self) -> float:
        """Seconds from now; negative when it has passed."""
        if self.machine and self.machine == machine():
            return self.steady - time.monotonic()
        return min(self.seconds, self.wall - time.time())

    def earlier(self, seconds: float) -> Deadline:
        return Deadline(self.seconds - seconds, self.steady - seconds, self.wall - seconds, self.machine)


@contextmanager
def until(deadline: Deadline) -> Iterator[None]:
    """`OutOfTime` at the deadline; only a process's main thread can be told so, others are asked between runs."""
    if deadline.seconds == FOREVER or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(1e-3, deadline.left))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
