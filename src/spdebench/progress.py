"""One progress line on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType


class Progress:
    """``[#####.....] 512/1200 samples  831/s  0:01 left  max|u| 1.23`` on standard error, redrawn in place."""

    def __init__(self, total: int, unit: str, *, enabled: bool | None = None) -> None:
        self.total, self.unit = total, unit
        self.enabled = sys.stderr.isatty() if enabled is None else enabled
        self.done = 0
        self._fresh = 0
        self._start = time.monotonic()
        self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._draw("")

    def skip(self, count: int) -> None:
        """Count work that was found done; it does not enter the rate."""
        self.done += count

    def advance(self, count: int, note: str = "") -> None:
        self.done += count
        self._fresh += count
        seconds = max(time.monotonic() - self._start, 1e-9)
        rate = self._fresh / seconds
        left = (self.total - self.done) / rate if rate else 0.0
        filled = 20 * self.done // max(self.total, 1)
        self._draw(
            f"[{'#' * filled}{'.' * (20 - filled)}] {self.done}/{self.total} {self.unit}  "
            f"{rate:.3g}/s  {int(left) // 60}:{int(left) % 60:02d} left  {note}"
        )

    def _draw(self, line: str) -> None:
        if self.enabled:
            sys.stderr.write("\r" + line.ljust(self._width) + ("" if line else "\r"))
            sys.stderr.flush()
            self._width = len(line)
