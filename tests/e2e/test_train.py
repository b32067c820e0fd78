"""train, evaluate, predict and sweep as a user meets them, kills and all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import spdebench as sb
from command_line import call

EPOCHS = 8
SMALL = ["width=8", "branch_depth=2", "trunk_depth=2", "batch_size=8", "early_stop_patience=0"]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    phi = sb.equation("phi41", points=16, frames=10, steps=10, truncation=8)
    return sb.generate(phi, n=40, seed=0, out=tmp_path_factory.mktemp("data"))


def test_old_names_train_the_same_run_and_are_told_in_one_line(data, tmp_path, capsys):
    new = ["batch_size=8", "early_stop_patience=0", "learning_rate=1e-3"]
    assert call("train", "deeponet", data, "width=4", "epochs=1", *new, "--out", tmp_path) == 0
    capsys.readouterr()
    old = ["batch=8", "early_stop_patience=0", "lr=1e-3"]
    assert call("train", "deeponet", data, "width=4", "epochs=1", *old, "--out", tmp_path) == 0
    captured = capsys.readouterr()
    assert "already finished" in captured.out and len(list(tmp_path.iterdir())) == 1
    assert captured.err.splitlines() == [
        "warning: 'batch' is now called 'batch_size'; the old name still works",
        "warning: 'lr' is now called 'learning_rate'; the old name still works",
    ]
    assert call("sweep", "deeponet", data, "width=4", "epochs=1,2", *old, "--out", tmp_path) == 0
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 2 and "learning_rate=1e-3" in captured.out


def test_train_evaluate_predict(data, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call("train", "deeponet", data, *SMALL, "epochs=3", "split_seed=1", "seed=2") == 0
    out = capsys.readouterr().out
    assert "28 training, 6 validation and 6 test samples; up to 3 epochs" in out and "next: spdebench" in out
    (folder,) = Path("runs").iterdir()
    run = sb.open_run(folder)
    assert run.spec.task["seed"] == 1 and run.spec.options["seed"] == 2 and run.spec.config["width"] == 8
    assert call("train", "deeponet", data, *SMALL, "epochs=3", "split_seed=1", "seed=2") == 0
    assert "already finished" in capsys.readouterr().out
    assert call("train", "deeponet", data, *SMALL, "epochs=3", "split_seed=1", "seed=2", "--json") == 0
    assert json.loads(capsys.readouterr().out) == run.record.to_dict()

    assert call("evaluate", folder) == 0
    assert f"{run.scores['rel_l2'].value:.4g}" in capsys.readouterr().out
    assert call("evaluate", folder, "--metrics", "rel_l2,w12", "--json") == 0
    assert [r["metric"] for r in json.loads(capsys.readouterr().out)["scores"]] == ["rel_l2", "w12"]
    assert call("evaluate", folder, "--truth", data, "--label", "own", "--json") == 0
    rows = {r["metric"]: r["value"] for r in json.loads(capsys.readouterr().out)["scores"]}
    assert rows["rel_l2"] == run.record.scores["rel_l2"].value and "own" in run.record.shifts
    for words in (["--label", "z"], ["--truth", data, "--label", "../x"], ["--rows", "0:3"]):
        assert call("evaluate", folder, *words) == 2
    label, name, rows = capsys.readouterr().err.splitlines()
    assert "give it with --truth" in label and "--label must be a file name" in name and "for a prediction" in rows
    assert list(run.record.shifts) == ["own"]


def test_sweep(data, tmp_path, capsys):
    assert (
        call(
            "sweep", "deeponet", data, *SMALL[1:], "epochs=2", "width=4,8", "learning_rate=1e-3,1e-2", "--out", tmp_path
        )
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines if "deeponet-phi41-" in line]
    assert len(rows) == 4 and [float(r[2]) for r in rows] == sorted(float(r[2]) for r in rows)
    width, lr = rows[0][:2]
    assert lines[-1].startswith("next: spdebench train deeponet") and f"width={width} learning_rate={lr}" in lines[-1]
    assert not list(tmp_path.glob("*/record.json"))
    assert call("status", "--runs", tmp_path, "--results", tmp_path / "none", "--data", tmp_path, "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["tables"]
    assert (found["runs"], found["done"], found["left"], found["seconds"]) == (4, 4, 0, 0)
    assert call(*lines[-1].split()[2:]) == 0  # what it says to type works, and only tests
    assert len(list(tmp_path.iterdir())) == 4 and len(list(tmp_path.glob("*/record.json"))) == 1


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_sweep_in_which_everything_diverges_fails_in_both_forms(data, tmp_path, capsys, form):
    words = [*SMALL, "epochs=3", "learning_rate=1e20,1e25", "--out", tmp_path]
    assert call("sweep", "deeponet", data, *words, *form) == 2
    assert "every combination diverged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "deepnet", "DATA"], "did you mean 'deeponet'"),
        (["train", "deeponet", "DATA", "ephocs=3"], "unknown key 'ephocs'; did you mean 'epochs'?"),
        (["train", "deeponet", "DATA", "widht=3"], "did you mean 'width'"),
        (["train", "deeponet", "DATA", "epochs=many"], "must be a whole number"),
        (["train", "deeponet", "DATA", "--inputs", "u0+xi"], "generate with kappa=0.1"),
        (["train", "deeponet", "missing.parquet"], "no such dataset"),
        (["train", "deeponet", "DATA", "--out", "/proc/runs"], "cannot write into /proc/runs"),
        (["train", "deeponet", "DATA", "learning_rate=1e30", "epochs=4", *SMALL], "loss became non-finite at epoch"),
        (["train", "deeponet", "DATA", "--device", "cuda"], "use --device cpu"),
        (["sweep", "deeponet", "DATA", "learning_rate=1e-3"], "nothing to search"),
        (["sweep", "deeponet", "DATA", "n=10,20"], "one task"),
        (["train", "deeponet", "DATA", "--checkpoint", "-1"], "checkpoint is a time in seconds, at least 0, got -1"),
        (["evaluate", "DATA"], "--truth FILE"),
        (["predict", "nowhere", "DATA", "--out", "u.txt"], "--out is a .npy file, got u.txt"),
        (["evaluate", "."], "no such run"),
        (["train", "mean", "DATA", "epochs=7"], "model 'mean' is fitted without gradient steps; it takes no epochs"),
        (["sweep", "mean", "DATA", "learning_rate=1,2"], "it takes no learning_rate, got learning_rate=1"),
        (["predict", "nowhere", "DATA"], "no such run"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(words, message, data, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call(*(data if word == "DATA" else word for word in words)) == 2
    err = capsys.readouterr().err
    assert message in err and err.startswith("error: ") and err.count("\n") == 1


STOPS = """
import os, time
from pathlib import Path
from spdebench.training import Fit
real, done = Fit.run_epoch, []
def stops(fit):
    if len(done) == 3:
        (Path(__file__).parent / f"stopped-{os.getpid()}").touch()
        time.sleep(600)
    done.append(fit)
    return real(fit)
Fit.run_epoch = stops
"""
"""A command of which the fourth epoch takes ten minutes."""


def start(data: Path, out: Path) -> subprocess.Popen:
    (out.parent / "stops.py").write_text(STOPS)
    words = ["train", "deeponet", str(data), *SMALL, f"epochs={EPOCHS}", "--checkpoint", "0", "--out", str(out)]
    return subprocess.Popen(
        [sys.executable, "-m", "spdebench", "--with", str(out.parent / "stops.py"), *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def wait_until_stopped(process: subprocess.Popen, folder: Path) -> bool:
    """Whether this process has come to the epoch that does not end, or (False) another one has."""
    limit = time.monotonic() + 300
    while not (found := list(folder.glob("stopped-*"))):
        assert time.monotonic() < limit and process.poll() is None
        time.sleep(0.01)
    (mark,) = found
    mark.unlink()
    return mark.name == f"stopped-{process.pid}"


def epochs(out: Path) -> int:
    return sum(len(p.read_text().splitlines()) for p in out.glob("*/log.jsonl"))


def test_killed_and_typed_again_equals_uninterrupted(data, tmp_path):
    """Two processes at once: kill -9 the one that trains, the other goes on; Ctrl-C that; go on to the end."""
    torch.set_num_threads(1)
    values = dict(word.split("=") for word in SMALL)
    config = {key: values.pop(key) for key in ("width", "branch_depth", "trunk_depth")}
    whole = sb.train("deeponet", sb.Task(data), out=tmp_path / "whole", config=config, epochs=EPOCHS, **values)
    cut = tmp_path / "cut"
    one, two = start(data, cut), start(data, cut)
    killed, other = (one, two) if wait_until_stopped(one, tmp_path) else (two, one)
    assert json.loads(next(cut.glob("*/lock")).read_text())["pid"] == killed.pid
    killed.kill()
    killed.communicate(timeout=120)
    assert killed.returncode == -9 and epochs(cut) == 3
    assert wait_until_stopped(other, tmp_path)
    assert epochs(cut) == 6
    other.send_signal(signal.SIGINT)
    _, err = other.communicate(timeout=120)
    assert other.returncode == 130 and "command continues" in err and "Traceback" not in err
    run = sb.train("deeponet", sb.Task(data), out=cut, config=config, epochs=EPOCHS, **values)
    assert all(torch.equal(run.model.state_dict()[k], v) for k, v in whole.model.state_dict().items())
    assert run.file("scores.json").read_bytes() == whole.file("scores.json").read_bytes()
    strip = lambda log: [{k: v for k, v in e.items() if k != "seconds"} for e in log]  # noqa: E731
    assert strip(run.log) == strip(whole.log) and len(run.log) == EPOCHS
