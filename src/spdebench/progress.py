"""Progress bars on a terminal, drawn by rich; nothing is printed elsewhere, so that logs stay short."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

_display: Any = None  # the live display that all open bars of this process share


class Progress:
    """``━━━━━━━━  512/1200 samples  831/s  0:01 left  max|u| 1.23`` on standard error; bars may be nested.

    ``enabled=False`` shows nothing; otherwise the bar is shown if standard error is a terminal.
    """

    def __init__(self, total: int, unit: str, *, enabled: bool | None = None) -> None:
        self.total, self.unit = total, unit
        self.enabled = enabled is not False and sys.stderr.isatty()
        self.done = 0
        self._fresh = 0
        self._start = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Progress:
        if self.enabled:
            self._bar = _shared_display().add_task("", total=max(self.total, 1), text=self.text())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        global _display
        if self._bar is not None:
            _display.remove_task(self._bar)
            if not _display.task_ids:
                _display.stop()
                _display = None
            self._bar = None

    def skip(self, count: int) -> None:
        """Count work that was found done; it does not enter the rate."""
        self.done += count

    def advance(self, count: int = 1, note: str = "") -> None:
        """Count work that was done now; ``note`` is shown behind the bar."""
        self.done += count
        self._fresh += count
        if self._bar is not None:
            _display.update(self._bar, completed=self.done, text=self.text(note))

    def text(self, note: str = "") -> str:
        """What stands behind the bar: how much is done, how fast, and how long the rest takes at this rate."""
        rate = self._fresh / max(time.monotonic() - self._start, 1e-9)
        left = f"{rate:.3g}/s  {_clock((self.total - self.done) / rate)} left  " if rate else ""
        return f"{self.done}/{max(self.total, self.done)} {self.unit}  {left}{note}".rstrip()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(max(seconds, 0)), 60)
    return f"{minutes}:{rest:02d}"


def _shared_display() -> Any:
    """The display of this process, started with its first bar. Lines printed meanwhile appear above the bars."""
    global _display
    if _display is None:
        from rich.console import Console  # slow to import, and needed on a terminal only
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Display

        _display = Display(
            BarColumn(24),
            TextColumn("{task.fields[text]}", markup=False),
            console=Console(stderr=True),
            transient=True,
            refresh_per_second=4,
            redirect_stdout=sys.stdout.isatty(),  # rich would send redirected output of a pipe to the terminal
        )
        _display.start()
    return _display
