"""Deadlines of a budget, also for workers on other machines.

The wall clock may be set while a campaign runs, so deadlines use the monotonic clock. On another machine that clock
means nothing; there the wall clock is used, but never for more than the whole budget. An end that comes too early
pauses a run at its checkpoint, one that comes too late costs time: no work is lost.
"""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

from spdebench.errors import UserError

FOREVER = float("inf")


def budget_seconds(text: str) -> float:
    """``25m`` -> 1500; units h, m, s, a bare number is seconds."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0}
    parts = re.findall(r"(\d+(?:\.\d+)?)([hms]?)", text)
    value = sum(float(number) * units[unit] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) != text or not value > 0:
        raise UserError(f"a budget is a time such as 25m, 1h30m or 90s, got '{text}'")
    return value


class OutOfTime(BaseException):
    """The budget is used up. It is not an `Exception`, so that code that handles errors does not catch it."""


@cache
def machine() -> str:
    """Identifies this machine since its last boot: processes with the same value share a monotonic clock."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class Deadline:
    """A moment ``seconds`` after its creation, for processes of this machine and of others.

    ``monotonic`` and ``wall`` are this moment on the two clocks; the first counts only on ``machine``.
    """

    seconds: float
    monotonic: float
    wall: float
    machine: str

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The moment this many seconds from now."""
        return cls(seconds, time.monotonic() + seconds, time.time() + seconds, machine())

    @property
    def seconds_left(self) -> float:
        """Seconds from now to this moment; negative when it has passed."""
        if self.machine and self.machine == machine():
            return self.monotonic - time.monotonic()
        return min(self.seconds, self.wall - time.time())

    def earlier(self, seconds: float) -> Deadline:
        """The moment this many seconds before this one."""
        return Deadline(self.seconds - seconds, self.monotonic - seconds, self.wall - seconds, self.machine)


@contextmanager
def until(deadline: Deadline) -> Iterator[None]:
    """Raise `OutOfTime` at the deadline; only in the main thread, other threads check between runs."""
    if deadline.seconds == FOREVER or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(1e-3, deadline.seconds_left))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
