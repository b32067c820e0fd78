"""Chunks made elsewhere: seen or not, damaged on the way, left half-written; which device and engine go together."""

from __future__ import annotations

import importlib
import os

import pytest

import spdebench as sb
from in_children import run_code
from spdebench.cli.main import main
from spdebench.data import checks
from spdebench.errors import UserError

gen = importlib.import_module("spdebench.data.generate")  # the module, which its function hides
TINY = sb.equation("phi41", points=16, truncation=8, steps=10, frames=10)


@pytest.fixture
def whole(tmp_path) -> bytes:
    return sb.generate(TINY, n=10, chunk=3, out=tmp_path / "whole").read_bytes()


def test_a_chunk_that_another_machine_wrote_must_be_seen_here(tmp_path, monkeypatch):
    def elsewhere(work, units, workers, **how):
        yield 0, 1.0, "node7"

    monkeypatch.setattr(gen, "run", elsewhere)
    monkeypatch.setattr(gen, "PATIENCE", 0.0)
    with pytest.raises(UserError, match=r"chunk 0 was written on node7 and is not in .* shared file system with --out"):
        sb.generate(TINY, n=4, out=tmp_path)
    assert not list(tmp_path.glob("*.parquet"))


def test_a_chunk_damaged_after_it_was_written_is_made_again(tmp_path, whole):
    def damage(fresh, found, largest):
        for path in (tmp_path / "out").glob(".*/chunk-000001.f4"):
            path.write_bytes(b"\0" * path.stat().st_size)

    path = sb.generate(TINY, n=10, chunk=3, out=tmp_path / "out", report=damage)
    assert path.read_bytes() == whole and os.listdir(tmp_path / "out") == [path.name]


def test_what_a_killed_process_left_is_swept_up(tmp_path, whole):
    """A whole command is killed while it puts the file together; the next one leaves the file alone in its folder."""
    code = (
        "import importlib, os, signal, spdebench as sb\n"
        "gen = importlib.import_module('spdebench.data.generate')\n"
        "class Dies(gen.Writer):\n"
        "    def _finish(self):\n        os.kill(os.getpid(), signal.SIGKILL)\n"
        "gen.Writer = Dies\n"
        "eq = sb.equation('phi41', points=16, truncation=8, steps=10, frames=10)\n"
        f"sb.generate(eq, n=10, chunk=3, out={str(tmp_path / 'out')!r})\n"
    )
    assert run_code(code).returncode == -9
    assert {p.suffix for p in (tmp_path / "out").iterdir()} == {".parts", ".tmp"}
    path = sb.generate(TINY, n=10, chunk=3, out=tmp_path / "out")
    assert path.read_bytes() == whole and os.listdir(tmp_path / "out") == [path.name]


def test_a_cluster_chooses_its_gpus(monkeypatch):
    monkeypatch.setattr(checks, "check_engine", lambda name: None)  # also where ray is not installed
    with pytest.raises(UserError, match="with --engine ray the cluster chooses the GPU: use --device cuda, not cuda:1"):
        checks.check_where("cuda:1", "ray")
    checks.check_where("cuda", "ray")  # this machine needs none
    with pytest.raises(UserError, match="unknown device 'tpu9'"):
        checks.check_where("tpu9", "ray")


def test_a_device_that_is_not_here(monkeypatch):
    monkeypatch.setattr(checks.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(checks.torch.cuda, "device_count", lambda: 2)
    for device in ("cpu", "cuda", "cuda:1"):
        checks.check_device(device)
    with pytest.raises(UserError, match="this machine has no device cuda:2; its last one is cuda:1"):
        checks.check_device("cuda:2")
    for device in ("mps", "meta", "tpu", ""):
        with pytest.raises(UserError, match=f"unknown device '{device}'"):
            checks.check_device(device)


@pytest.mark.parametrize("words", [["generate", "phi41"], ["table", "wave-dirichlet", "--run"]])
def test_an_unknown_engine_is_one_line(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main([*words, "--engine", "rai"])
    err = capsys.readouterr().err
    assert caught.value.code == 2 and err == "error: unknown engine 'rai'; did you mean 'ray'?\n"
    assert not list(tmp_path.iterdir())
