"""Runs: interrupted anywhere, asked for twice, on full disks; what they read and what they leave alone."""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import spdebench as sb
from spdebench import tensors
from spdebench.data.writer import Writer
from spdebench.errors import DamagedWarning
from spdebench.records import Record
from spdebench.tasks import Task
from spdebench.training import checkpoints, folder, part_for, score_on
from spdebench.training.loop import Fit
from spdebench.training.scoring import check_part
from spdebench.version import commit, made_with

FEW = {"epochs": 6, "batch_size": 8, "learning_rate": 1e-2, "checkpoint": 0}


def weights(run) -> dict[str, torch.Tensor]:
    return run.model.state_dict()


def timeless(run) -> list[dict]:
    return [{k: v for k, v in entry.items() if k != "seconds"} for entry in run.log]


def assert_same_run(a, b) -> None:
    assert all(torch.equal(weights(a)[k], weights(b)[k]) for k in weights(a))
    assert timeless(a) == timeless(b)
    assert a.file("scores.json").read_bytes() == b.file("scores.json").read_bytes()
    assert a.file("predictions.npy").read_bytes() == b.file("predictions.npy").read_bytes()
    keys = ("val", "best_epoch", "epochs", "scores", "samples", "digest", "parameters")
    assert all(getattr(a.record, key) == getattr(b.record, key) for key in keys)


@pytest.fixture
def whole(path, tmp_path):
    return sb.train("tiny", Task(path), out=tmp_path / "whole", config={"dropout": 0.2}, **FEW)


# --- what a run is ------------------------------------------------------------------------------------------------
def test_a_run_is_a_folder_that_loads_in_one_line(whole, task):
    run = sb.open_run(whole.path)
    assert run.spec == whole.spec and run.path.name == f"tiny-phi41-{run.spec.digest}" and run.finished
    assert set(os.listdir(run.path)) == {
        *("spec.json", "log.jsonl", "best.safetensors", "predictions.npy", "scores.json", "record.json", "lock")
    }
    record = run.record
    assert record.parameters == sum(p.numel() for p in run.model.parameters())
    assert record.val == min(e["val"] for e in run.log) == run.val and record.epochs == len(run.log) == 6
    assert record.scores["rel_l2"].value == run.scores["rel_l2"].value
    assert record.samples["rel_l2"] == pytest.approx(run.scores["rel_l2"].samples, rel=1e-3)
    assert set(record.scores) >= set(sb.metrics.PAPER) and record.inference_ms > 0
    assert record.training_seconds == pytest.approx(sum(e["seconds"] for e in run.log), abs=2e-3)
    assert record.provenance.device and record.provenance.torch and record.provenance.started
    assert Record.from_dict(json.loads(json.dumps(record.to_dict(), allow_nan=False))) == record
    np.testing.assert_array_equal(run.predict(task.test.u0, task.test.dw), run.predictions)
    assert not run.model.training


def test_a_finished_run_is_never_trained_again(whole, path, monkeypatch):
    monkeypatch.setattr(Fit, "run_epoch", lambda self: pytest.fail("trained again"))
    task = Task(path)
    again = sb.train("tiny", task, out=whole.path.parent, config={"dropout": 0.2}, **FEW)
    assert again.record == whole.record and task.train.reads == 0


def test_a_baseline_is_a_run_of_no_epochs(task, tmp_path):
    run = sb.train("average", task, out=tmp_path, seed=3)
    assert run.record.epochs == 0 and run.log == [] and run.record.val > 0
    assert sb.train("average", task, out=tmp_path, seed=4).path == run.path
    torch.testing.assert_close(weights(run)["mean"], (task.train.u - task.train.u0.unsqueeze(1)).mean(0))


def test_the_callers_model_and_random_state_are_left_alone(task, tmp_path):
    torch.manual_seed(0)
    model = sb.build("tiny", task)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    state = torch.random.get_rng_state()
    run = sb.train(model, task, out=tmp_path, **FEW)
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert not torch.equal(weights(run)["first.weight"], before["first.weight"])
    assert sb.train(model, task, out=tmp_path, **FEW).path == run.path and run.record.initial


# --- interrupted --------------------------------------------------------------------------------------------------
class Stop(BaseException):
    """As a kill: nothing of ours may catch it."""


def interrupt(monkeypatch, owner, name: str, at: int) -> None:
    """The ``at``-th call of a function ends in a kill, before or half-way through its work."""
    true, calls = getattr(owner, name), []

    def killed(*args, **kwargs):
        calls.append(None)
        if len(calls) == at:
            raise Stop
        return true(*args, **kwargs)

    monkeypatch.setattr(owner, name, killed)


@pytest.mark.parametrize(
    ("owner", "name", "at"),
    [
        ("spdebench.training.folder", "write_text", 1),  # before anything is written
        ("spdebench.training.loop.Fit", "_batches", 1),
        ("spdebench.training.steps.TrainingStep", "run", 10),  # in the middle of an epoch
        ("spdebench.training.loop.Fit", "validate", 3),
        ("spdebench.training.folder.Log", "add", 2),
        ("spdebench.training.checkpoints", "save", 1),
        ("spdebench.training.checkpoints", "save", 4),
        ("spdebench.training.checkpoints", "save", 7),  # the best weights
        ("spdebench.training.scoring", "evaluate", 1),
        ("spdebench.training.scoring", "write_json", 1),  # all but the record
    ],
)
def test_stopped_anywhere_and_started_again_equals_uninterrupted(whole, path, tmp_path, monkeypatch, owner, name, at):
    import importlib

    try:
        target = importlib.import_module(owner)
    except ModuleNotFoundError:
        module, _, cls = owner.rpartition(".")
        target = getattr(importlib.import_module(module), cls)
    with monkeypatch.context() as patch:
        interrupt(patch, target, name, at)
        with pytest.raises(Stop):
            sb.train("tiny", Task(path), out=tmp_path / "cut", config={"dropout": 0.2}, **FEW)
    again = sb.train("tiny", Task(path), out=tmp_path / "cut", config={"dropout": 0.2}, **FEW)
    assert_same_run(again, whole)
    assert not list(again.path.glob(".*"))


def test_files_of_earlier_versions_are_read(whole, path, tmp_path, monkeypatch):
    """`torch.save` wrote them as best.pt and last.pt, and the optimiser's state was numbered."""
    with monkeypatch.context() as patch:
        interrupt(patch, Fit, "run_epoch", 4)
        with pytest.raises(Stop):
            sb.train("tiny", Task(path), out=tmp_path / "cut", config={"dropout": 0.2}, **FEW)
    last = next((tmp_path / "cut").glob("*/last.safetensors"))
    for file in (last, whole.weights_file):
        content = tensors.load(file)
        if "optimiser" in content:
            content["optimiser"] = {int(k): v for k, v in content["optimiser"].items()}
        torch.save(content, file.with_suffix(".pt"))
        file.unlink()
    old = sb.open_run(whole.path)
    assert old.trained and old.weights_file.name == "best.pt" and old.val == whole.record.val
    assert_same_run(old, sb.train("tiny", Task(path), out=tmp_path / "cut", config={"dropout": 0.2}, **FEW))
    assert not list((tmp_path / "cut").glob("*/last.*"))


def test_checkpoints_by_the_clock_and_a_half_written_log(whole, path, tmp_path, monkeypatch):
    """The log may be ahead of the checkpoint, and its last line cut short."""
    options = {**FEW, "checkpoint": 0.0}
    with monkeypatch.context() as patch:
        offers = []
        offer = checkpoints.CheckpointWriter.offer
        patch.setattr(
            checkpoints.CheckpointWriter, "offer", lambda *a: offers.append(1) or len(offers) > 2 or offer(*a)
        )
        interrupt(patch, Fit, "run_epoch", 5)
        with pytest.raises(Stop):
            sb.train("tiny", Task(path), out=tmp_path / "cut", config={"dropout": 0.2}, **options)
    log = next((tmp_path / "cut").glob("*/log.jsonl"))
    assert len(log.read_text().splitlines()) == 4
    log.write_text(log.read_text() + '{"epoch": 5, "tr')
    state = tensors.load(log.parent / "last.safetensors")
    assert state["epoch"] == 2
    assert len(folder.read_log(log)) == 4
    again = sb.train("tiny", Task(path), out=tmp_path / "cut", config={"dropout": 0.2}, **options)
    assert_same_run(again, whole)


def test_paused_it_loses_no_epoch(whole, path, tmp_path):
    """Checkpoints by the clock are far apart; one is written when training is asked to pause."""
    needed = []

    def third(seconds):
        needed.append(seconds)
        return len(needed) == 3

    options = {**FEW, "checkpoint": 1e6}
    with pytest.raises(sb.training.Paused):
        sb.train("tiny", Task(path), out=tmp_path / "cut", config={"dropout": 0.2}, pause=third, **options)
    state = tensors.load(next((tmp_path / "cut").glob("*/last.safetensors")))
    assert state["epoch"] == 3 and min(needed) >= 2 * checkpoints.FIRST
    again = sb.train("tiny", Task(path), out=tmp_path / "cut", config={"dropout": 0.2}, **options)
    assert_same_run(again, whole)


def test_begun_anew_on_request(whole, path, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt(patch, Fit, "run_epoch", 4)
        with pytest.raises(Stop):
            sb.train("tiny", Task(path), out=tmp_path / "cut", config={"dropout": 0.2}, **FEW)
    begun = []
    monkeypatch.setattr(Fit, "load", lambda self, state: begun.append(state))
    again = sb.train("tiny", Task(path), out=tmp_path / "cut", config={"dropout": 0.2}, resume=False, **FEW)
    assert not begun
    assert_same_run(again, whole)


def test_two_at_once_do_not_spoil_each_other(whole, path, tmp_path):
    """The second says that it waits, then finds the run finished."""
    runs = []

    def work() -> None:
        runs.append(sb.train("tiny", Task(path), out=tmp_path / "both", config={"dropout": 0.2}, **FEW))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first, second = (threading.Thread(target=work) for _ in range(2))
        path_of = tmp_path / "both" / whole.path.name
        with folder.locked(path_of):
            first.start()
            second.start()
            limit = time.monotonic() + 120
            while len(said := [str(w.message) for w in caught if "in progress" in str(w.message)]) < 2:
                assert time.monotonic() < limit
                time.sleep(0.01)
            assert first.is_alive() and second.is_alive() and not (path_of / "spec.json").exists()
        first.join(timeout=120)
        second.join(timeout=120)
    assert all(f"process {os.getpid()} on" in line and "waiting" in line for line in said)
    assert len(runs) == 2
    for run in runs:
        assert_same_run(run, whole)


# --- what is read -------------------------------------------------------------------------------------------------
def planted(path: Path, out: Path, rows: np.ndarray) -> Path:
    """The same dataset, identity and all, with huge values in some rows."""
    ds = sb.open_dataset(path)
    arrays = [ds.u0.copy(), ds.dw.copy(), ds.u.copy()]
    for array in arrays:
        array[rows] = array[rows] * 1e4 + 7
    target = out / path.name
    with Writer(target, ds.identity, ds.shapes, 8, made_with("cpu")) as writer:
        writer.write(arrays)
    return target


def test_no_leak(path, tmp_path):
    """Markers in validation and test rows reach neither normalisation nor features nor weights."""
    task = Task(path)
    rows = task.spec.rows(40)
    clean = sb.train("tiny", task, out=tmp_path / "clean", early_stop_patience=0, scheduler="none", **FEW)
    last = {k: v.clone() for k, v in _last_weights(task, tmp_path / "a").items()}
    for part, names in (("test", ("train", "val")), ("val", ("train",))):
        marked = Task(planted(path, tmp_path / part, rows[part]))
        assert float(getattr(marked, part).u.abs().max()) > 1e3
        for name in names:
            assert torch.equal(getattr(marked, name).u, getattr(task, name).u)
        marked = Task(marked.datasets[0])
        assert all(torch.equal(last[k], v) for k, v in _last_weights(marked, tmp_path / f"last-{part}").items())
        if part == "test":  # validation chooses the epoch; the test part changes nothing but the scores
            run = sb.train("tiny", marked, out=tmp_path / "marked", early_stop_patience=0, scheduler="none", **FEW)
            assert all(torch.equal(weights(run)[k], v) for k, v in weights(clean).items())
            assert timeless(run) == timeless(clean) and run.val == clean.val
            assert run.scores["rel_l2"].value != clean.scores["rel_l2"].value


def _last_weights(task: Task, out: Path) -> dict[str, torch.Tensor]:
    """Weights after the last epoch, whichever validates best."""
    kept = {}
    true = Fit.run_epoch

    def run_epoch(self):
        entry = true(self)
        kept.update(self.model.state_dict())
        return entry

    Fit.run_epoch = run_epoch
    try:
        sb.train("tiny", task, out=out, test=False, early_stop_patience=0, scheduler="none", **FEW)
    finally:
        Fit.run_epoch = true
    return kept


def test_the_test_part_is_read_once_at_the_end(path, tmp_path, monkeypatch):
    task = Task(path)
    seen = []
    true = Fit.run_epoch
    monkeypatch.setattr(Fit, "run_epoch", lambda self: seen.append(task.test.reads) or true(self))
    run = sb.train("tiny", task, out=tmp_path, test=False, **FEW)
    assert seen == [0] * 6 and task.test.reads == 0 and run.trained and not run.finished
    assert run.val == min(e["val"] for e in run.log)
    with pytest.raises(sb.UserError, match="not finished"):
        run.scores  # noqa: B018
    tested = sb.train("tiny", task, out=tmp_path, **FEW)
    assert len(seen) == 6 and tested.finished  # only the test was made
    assert task.test.reads == 3  # u0, dw and u, each once


def test_sweep_sorts_by_validation_and_never_reads_the_test_part(path, tmp_path):
    from spdebench.training import sweep

    task = Task(path)
    trials = sweep(
        "tiny", task, {"learning_rate": ["1e-2", "1e30", "1e-4"], "width": ["4"]}, out=tmp_path, epochs=3, batch_size=8
    )
    assert [t.values["learning_rate"] for t in trials] == ["1e-2", "1e-4", "1e30"] and trials[0].val < trials[1].val
    assert trials[2].val is None and "non-finite" in trials[2].note
    assert task.test.reads == 0 and not list(tmp_path.glob("*/record.json"))
    run = sb.train("tiny", task, out=tmp_path, config={"width": 4}, learning_rate=1e-2, epochs=3, batch_size=8)
    assert run.path == trials[0].run.path and run.val == trials[0].val
    with pytest.raises(sb.UserError, match="did you mean 'width'"):
        sweep("tiny", task, {"widht": [1, 2]}, out=tmp_path)
    with pytest.raises(sb.UserError, match="one task"):
        sweep("tiny", task, {"n": [10, 20]}, out=tmp_path)


# --- other data ---------------------------------------------------------------------------------------------------
def test_scores_on_other_data_join_the_record(whole, path, tmp_path):
    other = sb.generate(sb.open_dataset(path).equation.replace(truncation=4), n=40, out=tmp_path)
    task = Task(path)
    entry = score_on(whole, task.part("test", other), "J=4")
    assert whole.record.shifts["J=4"] == entry and entry.datasets[0]["fields"]["truncation"] == 4
    v = whole.predict(*(sb.open_dataset(other).read(c)[task.spec.rows(40)["test"]] for c in ("u0", "dw")))
    truth = sb.open_dataset(other).u[task.spec.rows(40)["test"]]
    score = sb.evaluate(v, truth, task.test.grid, metrics=["rel_l2"], resamples=0)["rel_l2"]
    assert entry.scores["rel_l2"].value == pytest.approx(score.value, rel=1e-6)
    own = score_on(whole, part_for(whole, path), "own")
    assert own.scores == whole.record.scores and set(whole.record.shifts) == {"J=4", "own"}
    finer = sb.generate(sb.open_dataset(path).equation.replace(points=32), n=40, out=tmp_path)
    with pytest.raises(sb.UserError, match=r"works on the \(16,\) points it was trained on"):
        score_on(whole, task.part("test", finer), "finer")


def test_frames_at_another_distance_are_told(whole, path, tmp_path):
    equation = sb.open_dataset(path).equation
    slower = sb.generate(equation.replace(horizon=2 * equation.horizon), n=40, out=tmp_path)
    with pytest.warns(UserWarning, match="apart, those that .* was trained on .*; the model treats them alike"):
        check_part(whole, Task(path).part("test", slower))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_part(whole, Task(path).part("test", path))


def test_predict_checks_shapes(whole, task):
    u0, dw = task.test.u0, task.test.dw
    for bad, message in [
        ((u0, dw[:, 1:]), "11 frames, t_0 among them"),
        ((u0[:2], dw), r"u0 must be \(N X\)"),
        ((u0[:, :8], dw[:, :, :8]), r"works on the \(16,\) points"),
        ((u0, dw[0]), r"dw must be \(N T X\)"),
    ]:
        with pytest.raises(sb.UserError, match=message):
            whole.predict(*bad)


# --- mistakes and accidents ---------------------------------------------------------------------------------------
def test_bad_requests_are_one_line(task, path, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)  # as if it were not installed
    for given, message in [
        ({"ephocs": 3}, "unknown option 'ephocs'; did you mean 'epochs'"),
        ({"grpah": True}, "did you mean 'graph'"),
        ({"device": "cuda"}, "use --device cpu"),
        ({"learning_rate": 1e30, "epochs": 5}, "non-finite at epoch"),
        ({"config": {"widht": 3}}, "did you mean 'width'"),
        ({"tensorboard": True}, r"needs the package tensorboard.*pip install 'tensorboard"),
    ]:
        with pytest.raises(sb.UserError, match=message):
            sb.train("tiny", task, out=tmp_path, **given)
    with pytest.raises(sb.UserError, match="leave none for validation; try split=28:6:6"):
        sb.train("tiny", Task(path, split="80:0:20"), out=tmp_path)
    with pytest.raises(sb.UserError, match="leave 2 for the test, at least 3 are needed to score; try split=4:1:3"):
        sb.train("tiny", Task(path, n=8), out=tmp_path)
    with pytest.raises(sb.UserError, match="needs initial data that vary"):
        sb.train("tiny", Task(path, "u0+xi"), out=tmp_path)


def test_an_unwritable_folder(task, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(sb.UserError, match="cannot write into"):
        sb.train("tiny", task, out=tmp_path / "file" / "runs", **FEW)
    with pytest.raises(sb.UserError, match="cannot write into"):
        sb.train("tiny", task, out="/proc/runs", **FEW)


def test_logs_for_tensorboard(path, tmp_path, monkeypatch):
    """The files get every epoch once, also over an interruption: points of a lost session are purged.

    As the real one does, the writer keeps points for a while in memory, and `close` writes them.
    """
    import types

    points: dict[int, float] = {}

    class Writer:
        def __init__(self, folder, purge_step):
            self.kept = {}
            for step in [s for s in points if purge_step is not None and s >= purge_step]:
                del points[step]

        def add_scalar(self, key, value, step):
            if key == "val":
                assert step not in points
                self.kept[step] = value

        def close(self):
            points.update(self.kept)

    module = types.SimpleNamespace(SummaryWriter=Writer)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    with monkeypatch.context() as patch:
        interrupt(patch, checkpoints, "save", 4)
        with pytest.raises(Stop):
            sb.train("tiny", Task(path), out=tmp_path, tensorboard=True, **FEW)
    run = sb.train("tiny", Task(path), out=tmp_path, tensorboard=True, **FEW)
    assert points == {e["epoch"]: e["val"] for e in run.log}


@pytest.mark.parametrize(
    "what", ["last.safetensors", "log.jsonl", "best.safetensors", "predictions.npy", "record.json"]
)
def test_a_full_disk_loses_nothing(whole, path, tmp_path, monkeypatch, what):
    """The third write of a file finds the disk full; with room again the same command ends as if nothing had been."""
    true_open, true_bytes, seen = Path.open, Path.write_bytes, []

    def full(self) -> None:
        if what in self.name:
            seen.append(None)
            if len(seen) == (3 if what in ("last.safetensors", "log.jsonl") else 1):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def open_(self, mode="r", *args, **kwargs):
        if mode not in ("r", "rb"):
            full(self)
        return true_open(self, mode, *args, **kwargs)

    def write_bytes(self, data):
        full(self)
        return true_bytes(self, data)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", open_)
        patch.setattr(Path, "write_bytes", write_bytes)
        with pytest.raises(sb.UserError, match="No space left on device") as caught:
            sb.train("tiny", Task(path), out=tmp_path / "cut", config={"dropout": 0.2}, **FEW)
        assert "\n" not in str(caught.value)
    again = sb.train("tiny", Task(path), out=tmp_path / "cut", config={"dropout": 0.2}, **FEW)
    assert_same_run(again, whole)


def test_folders_that_are_not_what_their_name_says(whole, path, tmp_path, monkeypatch):
    spec = json.loads(whole.file("spec.json").read_text())
    whole.file("spec.json").write_text(json.dumps({**spec, "version": 9}))
    for work in (
        lambda: sb.open_run(whole.path),
        lambda: sb.train("tiny", Task(path), out=whole.path.parent, config={"dropout": 0.2}, **FEW),
    ):
        with pytest.raises(sb.UserError, match="version 9; this version reads 1"):
            work()
    whole.file("spec.json").write_text(json.dumps({**spec, "model": "other"}))
    with pytest.raises(sb.UserError, match="holds run"):
        sb.train("tiny", Task(path), out=whole.path.parent, config={"dropout": 0.2}, **FEW)
    with pytest.raises(sb.UserError, match="no such run"):
        sb.open_run(tmp_path / "nothing")


def test_a_checkpoint_of_another_run_or_damaged(path, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt(patch, Fit, "run_epoch", 3)
        with pytest.raises(Stop):
            sb.train("tiny", Task(path), out=tmp_path, **FEW)
    last = next(tmp_path.glob("*/last.safetensors"))
    run = sb.open_run(last.parent)
    with pytest.raises(sb.UserError, match=r"not trained to its end \(epoch 2 of 6\)"):
        run.predict(np.zeros((1, 16)), np.zeros((1, 11, 16)))
    state = tensors.load(last)
    checkpoints.save(last, state, "0123456789")
    with pytest.raises(sb.UserError, match="belongs to run 0123456789"):
        sb.train("tiny", Task(path), out=tmp_path, **FEW)
    last.write_bytes(last.read_bytes()[:500])
    with pytest.warns(DamagedWarning, match=r"it is kept as last.safetensors.damaged and made again"):
        assert sb.train("tiny", Task(path), out=tmp_path, **FEW).finished


def test_a_checkpoint_of_other_code_is_refused_or_stated(path, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt(patch, Fit, "run_epoch", 3)
        patch.setattr(checkpoints, "made_with", lambda device: made_with(device) | {"spdebench": "0.0.9"})
        with pytest.raises(Stop):
            sb.train("tiny", Task(path), out=tmp_path, **FEW)
    with pytest.raises(sb.UserError, match=r"was written with spdebench 0.0.9 \(now .*remove it .* or use --force"):
        sb.train("tiny", Task(path), out=tmp_path, **FEW)
    run = sb.train("tiny", Task(path), out=tmp_path, force=True, **FEW)
    assert run.record.provenance.resumed == (f"spdebench 0.0.9 (now {sb.__version__})",)


WRONG = [None, {"x": 1}, [3]]  # None: not there


@pytest.mark.parametrize("key", ["weights", "optimiser", "schedule", "epoch", "best", "log", "started", "nan"])
def test_a_checkpoint_with_the_right_digest_and_wrong_content_is_one_line(path, tmp_path, monkeypatch, key):
    with monkeypatch.context() as patch:
        interrupt(patch, Fit, "run_epoch", 2)
        with pytest.raises(Stop):
            sb.train("tiny", Task(path), out=tmp_path, **FEW)
    last = next(tmp_path.glob("*/last.safetensors"))
    for wrong in WRONG[: 1 if key in ("nan", "started") else 3]:
        state = tensors.load(last)
        kept = dict(state)
        if key == "nan":
            state["weights"] = {k: v * torch.nan if v.is_floating_point() else v for k, v in state["weights"].items()}
        state = {k: wrong if k == key else v for k, v in state.items() if k != key or wrong is not None}
        checkpoints.save(last, state, state["digest"])
        with pytest.raises(sb.UserError, match=r"does not fit its run .* remove it to train from the start"):
            sb.train("tiny", Task(path), out=tmp_path, **FEW)
        checkpoints.save(last, kept, kept["digest"])


@pytest.mark.parametrize("key", ["weights", "val", "best_epoch", "epochs", "seconds", "provenance", "nan"])
def test_weights_with_the_right_digest_and_wrong_content_are_one_line(path, tmp_path, key):
    run = sb.train("average", Task(path), out=tmp_path, test=False)
    for wrong in WRONG[: 1 if key == "nan" else 3]:
        content = {**run.best}
        if key == "nan":
            content["weights"] = {
                k: v * torch.nan if v.is_floating_point() else v for k, v in run.best["weights"].items()
            }
        content = {k: wrong if k == key else v for k, v in content.items() if k != key or wrong is not None}
        checkpoints.save(run.weights_file, content, run.spec.digest)
        with pytest.raises(sb.UserError, match=r"does not fit its run .* train it again"):
            sb.train("average", Task(path), out=tmp_path)


@pytest.mark.parametrize("name", ["spec.json", "record.json", "scores.json", "best.safetensors", "predictions.npy"])
def test_an_emptied_file_is_set_aside_and_made_again(whole, path, name):
    kept = {each: whole.file(each).read_bytes() for each in ("scores.json", "predictions.npy", "spec.json")}
    weights_before, log = weights(whole), timeless(whole)
    whole.file(name).write_bytes(b"")  # what a power cut leaves of a file that was not synced
    with pytest.warns(DamagedWarning) as told:
        again = sb.train("tiny", Task(path), out=whole.path.parent, config={"dropout": 0.2}, **FEW)
    first, *others = (str(warning.message) for warning in told)
    assert f"{name} is empty or damaged; it is kept as {name}.damaged and made again" in first
    of_the_run = name in ("scores.json", "best.safetensors", "predictions.npy")  # its record is made again with it
    assert len(others) == of_the_run and all(f"record.json belongs to {name}" in other for other in others)
    assert again.finished and whole.file(f"{name}.damaged").read_bytes() == b""
    assert all(torch.equal(weights(again)[k], w) for k, w in weights_before.items()) and timeless(again) == log
    assert all(whole.file(each).read_bytes() == content for each, content in kept.items())


def test_a_copy_is_told_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPDEBENCH_COMMIT", "0123abcd+")  # whatever repository lies around it
    commit.cache_clear()
    assert commit() == "0123abcd+"

    def no_repository(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr("subprocess.run", no_repository)
    for told, expected in (("0123abcd", "0123abcd"), ("0123abcd+", "0123abcd+"), ("<b>", None), ("", None)):
        monkeypatch.setenv("SPDEBENCH_COMMIT", told)
        commit.cache_clear()
        assert commit() == expected
    commit.cache_clear()
