"""Progress: bars on a terminal, drawn by rich; a bar of its own in a notebook; elsewhere one line per minute."""

from __future__ import annotations

import sys
import time
from html import escape
from types import TracebackType
from typing import Any

LINE_EVERY = 60.0
"""Seconds between two lines where there is neither a terminal nor a notebook."""
_display: Any = None  # the live display that all open bars of this process share


class Progress:
    """``━━━━━━━━  512/1200 samples  831/s  0:01 left  max|u| 1.23`` on standard error; bars may be nested.

    ``enabled=False`` shows nothing; otherwise a terminal and a notebook show a bar, and without either a line is
    printed after each `LINE_EVERY` seconds of work.
    """

    def __init__(self, total: int, unit: str, *, enabled: bool | None = None) -> None:
        self.total, self.unit = total, unit
        self.enabled = enabled is not False and sys.stderr.isatty()
        self._in_notebook = enabled is not False and not self.enabled and in_notebook()
        self._in_log = enabled is not False and not self.enabled and not self._in_notebook
        self._shown: Any = None
        self.done = 0
        self._fresh = 0
        self._start = self._said = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Progress:
        if self.enabled:
            self._bar = _shared_display().add_task("", total=max(self.total, 1), text=self.text())
        elif self._in_notebook:
            from IPython.display import display

            self._shown = display(self, display_id=True)
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
        """Count work that was already done before; it does not enter the rate."""
        self.done += count

    def advance(self, count: int = 1, note: str = "") -> None:
        """Count work that was done now; ``note`` is shown behind the bar."""
        self.done += count
        self._fresh += count
        if self._bar is not None:
            _display.update(self._bar, completed=self.done, text=self.text(note))
        now = time.monotonic()
        if self._shown is not None and (now - self._said > 0.25 or self.done >= self.total):
            self._said = now
            self._shown.update(self)
        elif self._in_log and now - self._said >= LINE_EVERY:
            self._said = now
            sys.stderr.write(f"{self.text(note)}\n")
            sys.stderr.flush()

    def _repr_html_(self) -> str:
        """The bar of a notebook."""
        return f'<progress value="{self.done}" max="{max(self.total, self.done, 1)}"></progress> {escape(self.text())}'

    def text(self, note: str = "") -> str:
        """The text after the bar: how much is done, how fast, and how much time is left at this rate."""
        rate = self._fresh / max(time.monotonic() - self._start, 1e-9)
        left = f"{rate:.3g}/s  {_clock((self.total - self.done) / rate)} left  " if rate else ""
        return f"{self.done}/{max(self.total, self.done)} {self.unit}  {left}{note}".rstrip()


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _clock(seconds: float) -> str:
    minutes, remaining = divmod(int(max(seconds, 0)), 60)
    return f"{minutes}:{remaining:02d}"


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
