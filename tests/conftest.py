"""Property tests draw the same cases every time: a failure seen once can be had again. What needs a GPU is skipped."""

import os
import signal
from collections import Counter
from pathlib import PurePosixPath

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch starts: two workers and their commands share few cores

import torch
from hypothesis import settings

from spdebench import progress

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")


def pytest_configure() -> None:
    """No line of progress per minute: on a slow machine it would stand among the words that a test compares.

    Signals act as in a terminal: a background job ignores some of them, and the commands under test inherit that.
    """
    progress.LINE_EVERY = float("inf")
    os.fsync = lambda descriptor: None  # it takes milliseconds; tests/crash checks what is synced, on a simulated disk
    os.environ.setdefault("SPDEBENCH_COMMIT", "0123456789")  # files of the checkout may be edited while tests run
    for name in (signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(name) is signal.SIG_IGN:
            signal.signal(name, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """With --durations: the seconds of each folder of tests, all processes added up."""
    if not terminalreporter.config.getoption("durations"):
        return
    seconds: Counter[str] = Counter()
    for report in (r for reports in terminalreporter.stats.values() for r in reports):
        if isinstance(report, pytest.TestReport):
            seconds[str(PurePosixPath(report.nodeid.split("::")[0]).parent)] += report.duration
    terminalreporter.section("seconds by folder")
    for folder, total in seconds.most_common():
        terminalreporter.line(f"{total:8.1f}s {folder}")
