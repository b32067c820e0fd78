"""Help does not wait for torch."""

from __future__ import annotations

import subprocess
import sys

from command_line import call

VERBS = ("list", "show", "generate", "data", "train", "evaluate", "predict", "sweep", "table", "status", "plot")
HEAVY = ("torch", "numpy", "scipy", "pandas", "pyarrow", "matplotlib")


def test_help_of_every_verb_imports_nothing_slow():
    program = f"""
import sys
from spdebench.cli.main import main
for words in ([], *([verb] for verb in {(*VERBS, "report", "results", "findings", "doctor")!r}), ["data", "push"]):
    try:
        main([*words, "--help"])
    except SystemExit as end:
        assert not end.code, (words, end.code)
print("slow:", *(name for name in {HEAVY!r} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: ") == 17 and done.stdout.endswith("slow:\n")


def test_no_line_of_a_list_of_commands_is_cut(capsys, monkeypatch):
    """The first sentence of every command fits into one line of the help of its group, on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    for words in ([], ["data"], ["challenge"], ["model"], ["bench"]):
        assert call(*words, "--help") == 0
    shown = capsys.readouterr().out
    assert shown.count("Commands:") == 5
    assert [line for line in shown.splitlines() if line.endswith("...") and "Usage" not in line] == []


def test_public_names_are_imported_when_used():
    program = """
import sys, spdebench
assert "torch" not in sys.modules and "Task" in dir(spdebench)
assert spdebench.Task is spdebench.tasks.Task and callable(spdebench.generate) and "torch" in sys.modules
assert all(hasattr(spdebench, name) for name in spdebench.__all__)
assert not hasattr(spdebench, "nothing")
from spdebench import *
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
