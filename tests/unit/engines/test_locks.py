"""One process at a time in a folder; a lock ends with its process, however that ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import warnings

import pytest

from spdebench.engines import holder_of, locked
from spdebench.errors import UserError
from spdebench.file_locks import lock_exclusive, try_lock

HOLD = (
    "import sys, time; from pathlib import Path; from spdebench.engines.locks import locked\n"
    "with locked(Path(sys.argv[1])):\n    print('held', flush=True); time.sleep(600)"
)


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_seen_from_elsewhere_and_gone_with_its_process(holder, tmp_path):
    assert holder_of(tmp_path).startswith(f"process {holder.pid} on ")
    assert holder_of(tmp_path / "other") == ""
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert holder_of(tmp_path) == ""  # the note is still there, the lock is not
    assert str(holder.pid) in (tmp_path / "lock").read_text()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with locked(tmp_path):
            assert holder_of(tmp_path)


def test_looking_does_not_take_it(tmp_path):
    with locked(tmp_path):
        assert holder_of(tmp_path) and holder_of(tmp_path)
    assert holder_of(tmp_path) == "" == holder_of(tmp_path)


def test_a_system_without_locks_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)  # its import fails
    with pytest.raises(UserError, match="this system has no file locks"), locked(tmp_path):
        pass
    with (tmp_path / "file").open("w") as file, pytest.raises(UserError, match="use Linux, macOS or WSL"):
        lock_exclusive(file)


def test_waiting_for_a_lock(holder, tmp_path):
    with (tmp_path / "lock").open("a") as file:
        assert not try_lock(file) and not try_lock(file, shared=True)
        holder.kill()
        lock_exclusive(file)
        with (tmp_path / "lock").open("a") as other:
            assert not try_lock(other)
    with (tmp_path / "lock").open("a") as file:
        assert try_lock(file)
