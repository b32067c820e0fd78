"""Progress bars: on a terminal or in a notebook, nested in one display, never in the way of what a command prints."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import types

from spdebench import progress
from spdebench.progress import Progress

NESTED = """
import time
from rich.progress import TextColumn
from spdebench.progress import Progress
drawn, render = [], TextColumn.render
def noting(column, task):
    drawn.append(task.fields["text"])
    return render(column, task)
TextColumn.render = noting
with Progress(3, "runs") as outer:
    for run in range(3):
        with Progress(100, "epochs") as inner:
            for _ in range(100):
                inner.advance(1, "best [val] 0.5")
            drawn.clear()
            while not any("100/100 epochs" in text and "best" in text for text in drawn):
                time.sleep(0.01)  # the display is drawn four times per second
        print(f"run {run} done", flush=True)
        outer.advance()
"""


def on_a_terminal(code: str, piped: bool) -> tuple[str, str]:
    """(standard output, what the terminal got): standard error is a terminal, and standard output one or a pipe."""
    main, child = pty.openpty()
    out = subprocess.PIPE if piped else child
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen([sys.executable, "-c", code], stdout=out, stderr=child, env=environment)
    os.close(child)
    seen = b""
    while True:
        try:
            block = os.read(main, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not block:
            break
        seen += block
    printed = process.communicate()[0] if piped else b""
    assert process.wait() == 0, seen.decode()
    os.close(main)
    return (printed or b"").decode(), seen.decode()


def test_nested_bars_on_a_terminal():
    _, seen = on_a_terminal(NESTED, piped=False)
    assert "epochs" in seen and "3 runs" in seen and "best [val] 0.5" in seen and "left" in seen
    assert all(f"run {k} done" in seen for k in range(3))


def test_what_a_command_prints_into_a_pipe_is_no_part_of_the_bar():
    printed, seen = on_a_terminal(NESTED, piped=True)
    assert printed == "run 0 done\nrun 1 done\nrun 2 done\n" and "run 0 done" not in seen and "epochs" in seen


def test_elsewhere_nothing_is_shown(capfd):
    with Progress(10, "samples", enabled=True) as bar:
        bar.skip(4)
        bar.advance(3, "note")
    assert bar.done == 7 and capfd.readouterr() == ("", "") and progress._display is None


def test_what_was_found_done_does_not_enter_the_rate(monkeypatch):
    clock = iter((100.0, 110.0, 110.0))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    bar = Progress(1000, "samples")
    bar.skip(500)
    bar.advance(100)
    assert bar.text("max|u| 2") == "600/1000 samples  10/s  0:40 left  max|u| 2"


def test_without_a_terminal_there_is_a_line_per_minute(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_EVERY", 60.0)
    clock = iter(range(0, 10_000, 25))  # seconds: each look at the clock is 25 later
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    for enabled, least in ((None, 2), (False, 0)):
        with Progress(10, "samples", enabled=enabled) as bar:
            for _ in range(10):
                bar.advance()
        lines = capsys.readouterr().err.splitlines()
        assert least <= len(lines) <= 5 * least and all("/10 samples" in line for line in lines)


def test_in_a_notebook_there_is_a_bar(monkeypatch):
    shown = []

    class Handle:
        def update(self, bar):
            shown.append(bar._repr_html_())

    kernel = type("ZMQInteractiveShell", (), {})()
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: kernel
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = lambda bar, display_id: Handle()
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    with Progress(2, "<samples>") as bar:
        bar.advance()
        bar.advance()
    assert shown[-1].startswith('<progress value="2" max="2"></progress> 2/2 &lt;samples&gt;')
