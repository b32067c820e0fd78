"""Signals end a command in one line, at any moment; odd names and files of the user are one line as well."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import spdebench as sb
from command_line import call
from spdebench.data.writer import Writer
from spdebench.errors import UserError
from spdebench.files import write_text

TINY = sb.equation("phi41", points=16, truncation=8, steps=10, frames=10)
SLOW = (
    "import time, importlib\ngen = importlib.import_module('spdebench.data.generate')\nreal = gen.make_part\n"
    "def slow(unit):\n    print('begun', flush=True)\n    time.sleep(600)\n"
    "    return real(unit)\ngen.make_part = slow\n"
)


GENERATE = ("generate", "phi41", "points=16", "truncation=8", "steps=10", "frames=10", "-n", "6")


def started(tmp_path: Path, extension: str, *words: str) -> subprocess.Popen[str]:
    """A command with this file of extensions, after the file has printed 'begun'."""
    write_text(tmp_path / "extension.py", extension)
    command = [sys.executable, "-m", "spdebench", "--with", str(tmp_path / "extension.py"), *words]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert process.stdout is not None
    while process.stdout.readline() != "begun\n":
        assert process.poll() is None
    return process


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_other_signals_end_a_command_as_an_interrupt_does(tmp_path, name):
    process = started(tmp_path, SLOW, *GENERATE)
    process.send_signal(number := getattr(signal, name))
    _, said = process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert said == "\ninterrupted; finished work is kept, and the same command continues\n"
    assert not list((tmp_path / "data").rglob("*.tmp"))


def test_a_second_interrupt_ends_it_at_once_and_without_a_traceback(tmp_path):
    process = started(tmp_path, SLOW, *GENERATE)
    for _ in range(5):
        process.send_signal(signal.SIGINT)
        time.sleep(0.002)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130 and "Traceback" not in said


def test_a_signal_while_the_interpreter_shuts_down_leaves_the_exit_code(tmp_path):
    """Objects of modules are deleted after Python has restored the default handlers of signals."""
    text = (
        "import os\nclass Late:\n    def __del__(self, read=os.read):\n        print('begun', flush=True)\n"
        "        read(0, 1)  # until the test has sent its signals\nlate = Late()\n"
    )
    process = started(tmp_path, text, "list", "equation")
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        process.send_signal(getattr(signal, name))
    _, said = process.communicate("\n", timeout=120)
    assert process.returncode == 2 and said.startswith("error: ") and said.count("\n") == 1


@pytest.mark.parametrize("delay", [0.0, 0.03, 0.1])
def test_an_interrupt_while_the_command_is_imported(delay):
    """From the first statement of the package on; the interpreter itself has its own message before that."""
    script = (
        "import sys; sys.argv[1:] = ['list', 'models']; import spdebench.__main__ as m\n"
        "first = m.interrupts.end_at_once\n"
        "m.interrupts.end_at_once = lambda: (first(), print('ready', flush=True))\nm.main()"
    )
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", script], stdout=pipe, stderr=pipe, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode in (0, 130) and "Traceback" not in said


def test_an_interrupt_while_an_object_is_deleted_is_not_lost(tmp_path):
    """Python would print a traceback there and go on."""
    text = (
        "import time\nclass Slow:\n    def __del__(self):\n        print('begun', flush=True)\n"
        "        time.sleep(600)\nSlow()\ntime.sleep(600)\n"
    )
    process = started(tmp_path, text, "list", "models")
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    assert said == "\ninterrupted; finished work is kept, and the same command continues\n"


def test_names_that_are_too_long_or_not_text(tmp_path, capsys):
    for words in (["data", "info", "x" * 300], ["evaluate", "x" * 300], ["generate", "phi41", "--out", "x" * 300]):
        assert call(*words) == 2
        assert "File name too long" in (said := capsys.readouterr().err) and said.count("\n") == 1
    assert call("data", "info", os.fsdecode(b"caf\xe9.parquet")) == 2
    assert "is not UTF-8; rename the file or folder" in capsys.readouterr().err


def test_a_checkpoint_that_cannot_be_removed_is_no_error(tmp_path, monkeypatch):
    path = sb.generate(TINY, n=40, out=tmp_path)
    real = Path.unlink

    def refuses(self, missing_ok=False):
        if self.name.startswith("last."):
            raise PermissionError(1, "Operation not permitted")
        real(self, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuses)
    run = sb.train("fno", path, out=tmp_path, epochs=1, checkpoint=0, config={"width": 4, "modes": (4, 4), "layers": 1})
    assert run.finished and run.file("last.safetensors").exists()
    monkeypatch.undo()
    again = sb.train("fno", path, out=tmp_path, epochs=1, config={"width": 4, "modes": (4, 4), "layers": 1})
    assert again.finished and not run.file("last.safetensors").exists()  # what was left is removed by the next command


def test_values_that_are_not_finite_are_not_blamed_on_the_learning_rate(tmp_path):
    whole = sb.open_dataset(sb.generate(TINY, n=40, out=tmp_path))
    arrays = [whole.read(column) for column in ("u0", "dw", "u")]
    arrays[2][3, 4, 5] = np.nan
    with Writer(tmp_path / "bad.parquet", whole.identity, whole.shapes, 8, whole.made) as writer:
        writer.write(arrays)
    torch.set_num_threads(1)
    with pytest.raises(UserError, match=r"1 of \d+ \w+ samples have values that are not finite; check the dataset"):
        sb.train("fno", tmp_path / "bad.parquet", out=tmp_path, epochs=1)
