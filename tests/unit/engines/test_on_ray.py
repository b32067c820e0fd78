"""Ray in short: its own Ray started, the local engine's bytes, a killed worker, errors in one line, leaving nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess

import engine_units
import pytest

import spdebench as sb
from spdebench import engines
from spdebench.engines import Need, heartbeats, on_ray
from spdebench.errors import UserError

ray = pytest.importorskip("ray", reason="needs the extra ray")


@pytest.fixture(scope="module", autouse=True)
def session():
    """One Ray for all tests here, started as the engine starts it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        with on_ray._connected(on_ray._import(), 2):
            yield
    assert not ray.is_initialized()


def test_the_bytes_of_the_local_engine(tmp_path):
    tiny = sb.equation("phi41", points=16, truncation=8, steps=10, frames=10)
    one = sb.generate(tiny, n=7, chunk=3, out=tmp_path / "local")
    other = sb.generate(tiny, n=7, chunk=3, out=tmp_path / "ray", engine="ray")
    assert one.read_bytes() == other.read_bytes()
    assert os.listdir(tmp_path / "ray") == [other.name]


def test_one_thread_and_a_killed_worker(tmp_path):
    assert set(engines.run(engine_units.square, [1, 2, 3], engine="ray")) == {(1, 1), (4, 1), (9, 1)}
    units = [(str(tmp_path), k) for k in (2, 3, 4)]
    assert sorted(engines.run(engine_units.dies_once, units, engine="ray")) == [2, 3, 4]
    assert (tmp_path / "3").read_text() == "xx"


@pytest.mark.slow
def test_the_unit_of_a_stopped_worker_is_given_to_another(tmp_path, monkeypatch):
    monkeypatch.setattr(on_ray, "CHECK_EVERY", 0.4)
    monkeypatch.setattr(heartbeats, "SILENT", 3)
    units = [(str(tmp_path), number) for number in range(3)]
    assert sorted(engines.run(engine_units.stops_once, units, engine="ray")) == [0, 1, 2]


def test_a_worker_stopped_before_its_first_sign_is_found():
    """Only that which is stopped and has a unit is killed."""
    words = {"stopped": "ray::call", "runs": "ray::call", "idle": "ray::IDLE"}
    found = {k: subprocess.Popen([name, "600"], executable=shutil.which("sleep")) for k, name in words.items()}
    try:
        for name in ("stopped", "idle"):
            found[name].send_signal(signal.SIGSTOP)
            os.waitpid(found[name].pid, os.WUNTRACED)  # returns when it has stopped
        heartbeats.kill_stopped(0.05, os.getpid())
        assert found["stopped"].wait(120) == -signal.SIGKILL
        assert found["runs"].poll() is None and found["idle"].poll() is None
    finally:
        for process in found.values():
            process.kill()
            process.wait()


def test_errors_are_the_units_own_and_too_much_is_refused():
    with pytest.raises(UserError, match=r"^1 is not wanted here$"):
        list(engines.run(engine_units.refuses, [1], engine="ray"))
    with pytest.raises(UserError, match="asks for 1 GPUs, which no node of the Ray cluster has"):
        list(engines.run(engine_units.square, [1], engine="ray", needs=Need(gpus=1.0)))
    huge = Need(memory=1 << 50)  # more than any machine has: alone it may run
    assert list(engines.run(engine_units.square, [3], engine="ray", needs=huge)) == [(9, 1)]
