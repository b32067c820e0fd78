"""predict and evaluate as a user meets them: which samples are scored, and which metrics."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

import spdebench as sb
from command_line import call
from spdebench.metrics.base import METRICS

SMALL = {"points": 16, "frames": 10, "steps": 10, "truncation": 8}


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return sb.generate(sb.equation("phi41", **SMALL), n=40, seed=0, out=tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory) -> sb.Run:
    out = tmp_path_factory.mktemp("runs")
    return sb.train("deeponet", sb.Task(data), out=out, config={"width": 8}, epochs=2, progress=False)


@pytest.fixture
def run(trained, tmp_path, monkeypatch) -> sb.Run:
    """A copy of the run, in an empty folder of its own."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained.path, tmp_path / trained.name)
    return sb.open_run(trained.name)


def scores(capsys) -> tuple[dict, dict]:
    found = json.loads(capsys.readouterr().out)
    return found, {row["metric"]: row["value"] for row in found["scores"]}


def test_what_predict_suggests_scores_the_test_part(run, data, capsys):
    assert call("predict", run.path, data) == 0
    said, hint = capsys.readouterr().out.splitlines()
    assert "test part, 6 of 40 samples, which the run never saw" in said
    assert np.load("prediction.npy").shape[0] == 6
    assert hint.startswith("next: spdebench evaluate ")
    assert call("evaluate", "prediction.npy", "--truth", data) == 2
    assert "has 6 samples and" in (err := capsys.readouterr().err) and "(--run RUN)" in err and "(--part test)" in err
    assert call("evaluate", "prediction.npy", "--truth", data, "--part", "test", "--json") == 0  # no run is needed
    assert scores(capsys)[1]["rel_l2"] == pytest.approx(run.scores["rel_l2"].value, rel=1e-6)
    assert call("evaluate", "prediction.npy", "--truth", data, "--part", "all") == 2
    assert "without it: train, val, test" in capsys.readouterr().err
    assert call(*shlex.split(hint)[2:], "--json") == 0
    found, values = scores(capsys)
    assert found["part"] == "test" and found["n"] == 6
    assert values["rel_l2"] == pytest.approx(run.scores["rel_l2"].value, rel=1e-6)


def test_parts_by_name_and_by_rows(run, data, capsys):
    rows = run.spec.task_spec.rows(40)
    for part in ("train", "val", "test"):
        assert call("predict", run.path, data, "--part", part, "--out", f"{part}.npy", "--json") == 0
        assert json.loads(capsys.readouterr().out)["shape"][0] == len(rows[part])
    ds = sb.open_dataset(data)
    np.testing.assert_array_equal(np.load("train.npy"), run.predict(ds.u0[rows["train"]], ds.dw[rows["train"]]))
    assert call("predict", run.path, data, "--rows", "0:20") == 0
    assert len(np.load("prediction.npy")) == (rows["test"] < 20).sum()
    capsys.readouterr()
    other = sb.generate(sb.equation("phi41", **SMALL), n=20, seed=1, out="other")
    for words, said in (([], "all 20 samples"), (["--rows", "5:8"], "3 of 20 samples")):
        assert call("predict", run.path, other, *words, "--overwrite") == 0
        assert f": {said}, which the run never saw" in capsys.readouterr().out
    capsys.readouterr()
    assert call("predict", run.path, data, "--part", "all", "--out", "all.npy") == 2
    assert "34 of the 40 samples of" in capsys.readouterr().err and not Path("all.npy").exists()
    assert call("predict", run.path, data, "--part", "tets", "--out", "x.npy") == 2
    assert "unknown part 'tets'; did you mean 'test'?" in capsys.readouterr().err


def test_scores_on_training_samples_are_shown_and_not_stored(run, data, capsys):
    before = run.file("record.json").read_bytes()
    assert call("evaluate", run.path, "--truth", data, "--part", "train") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("train part, 28 of 40 samples, on which the run was trained\n") and "sigw1" in shown
    assert run.file("record.json").read_bytes() == before
    assert call("evaluate", run.path, "--truth", data, "--part", "test", "--label", "again", "--metrics", "paper") == 0
    assert run.record.shifts["again"].part == "test"


def test_predict_does_not_overwrite_silently(run, data, capsys):
    Path("prediction.npy").write_bytes(b"mine")
    assert call("predict", run.path, data) == 2
    assert "prediction.npy already exists; choose another --out" in capsys.readouterr().err
    assert Path("prediction.npy").read_bytes() == b"mine"
    assert call("predict", run.path, data, "--overwrite") == 0
    assert len(np.load("prediction.npy")) == 6


def test_a_longer_file_with_the_same_seed_has_the_same_test_samples_and_more(run, tmp_path, capsys):
    longer = sb.generate(sb.equation("phi41", **SMALL), n=60, seed=0, out=tmp_path / "data")
    assert call("evaluate", run.path, "--truth", longer, "--json") == 0
    found, _ = scores(capsys)
    assert (found["part"], found["n"]) == ("test", 9)
    assert call("evaluate", run.path, "--truth", longer, "--part", "unseen", "--json") == 0
    found, _ = scores(capsys)
    assert (found["part"], found["n"]) == ("unseen", 26)
    assert call("evaluate", run.path, "--truth", longer, "--part", "all") == 2


def test_after_a_split_by_weights_a_longer_file_is_split_by_what_the_run_saw(data, tmp_path, capsys):
    run = sb.train("mean", sb.Task(data, split="70:15:15"), out=tmp_path, progress=False)
    longer = sb.generate(sb.equation("phi41", **SMALL), n=60, seed=0, out=tmp_path / "data")
    assert call("evaluate", run.path, "--truth", longer, "--json") == 0
    found, _ = scores(capsys)
    assert (found["part"], found["n"]) == ("unseen", 26)


def test_a_file_with_another_seed_is_used_whole(run, tmp_path, capsys):
    other = sb.generate(sb.equation("phi41", **SMALL), n=12, seed=1, out=tmp_path / "data")
    assert call("evaluate", run.path, "--truth", other, "--label", "new", "--json") == 0
    found, _ = scores(capsys)
    assert (found["part"], found["n"]) == ("all", 12)


@pytest.fixture
def own_metric():
    class Largest(sb.Metric, name="largest_error"):
        """max |V - U|"""

        def measure(self, pair, *, samples=True):
            v, u = pair.frame_zero()
            return sb.Measurement(float((v - u).abs().max()))

    yield
    del METRICS._items["largest_error"]


def test_a_metric_of_ones_own_is_computed_from_stored_predictions(run, data, own_metric, capsys, monkeypatch):
    monkeypatch.setattr(type(run), "model", None)  # the stored predictions are enough
    before = run.file("record.json").read_bytes()
    assert call("evaluate", run.path, "--metrics", "rel_l2,largest_error") == 2
    assert f"--truth {data.name}" in capsys.readouterr().err
    words = ["evaluate", run.path, "--truth", data, "--json", "--metrics"]
    assert call(*words, "rel_l2,largest_error") == 0
    _, values = scores(capsys)
    assert list(values) == ["rel_l2", "largest_error"]
    assert values["rel_l2"] == pytest.approx(run.scores["rel_l2"].value, rel=1e-6)
    assert call(*words, "all") == 0
    found, values = scores(capsys)
    assert set(values) | set(found["skipped"]) == set(METRICS)
    assert run.file("record.json").read_bytes() == before


def test_datasets_in_the_folder_data_are_found(run, data, own_metric, capsys):
    Path("data").mkdir()
    Path("data", data.name).symlink_to(data)
    assert call("evaluate", run.path, "--metrics", "largest_error", "--json") == 0
    assert list(scores(capsys)[1]) == ["largest_error"]


def test_an_error_writes_nothing(run, tmp_path, capsys):
    other = sb.generate(sb.equation("phi41", **SMALL), n=12, seed=1, out=tmp_path / "data")
    before = run.file("record.json").read_bytes()
    assert call("evaluate", run.path, "--truth", other, "--metrics", "rel_l2,rel_l3") == 2
    assert "unknown metric 'rel_l3'; did you mean 'rel_l1' or 'rel_l2'?" in capsys.readouterr().err
    assert run.file("record.json").read_bytes() == before


def test_runs_and_predictions_are_shown_in_one_layout(run, data, capsys):
    assert call("evaluate", run.path, "--metrics", "rel_l2") == 0
    of_run = capsys.readouterr().out.splitlines()
    assert call("predict", run.path, data) == 0
    capsys.readouterr()
    assert call("evaluate", "prediction.npy", "--truth", data, "--run", run.path, "--metrics", "rel_l2") == 0
    of_prediction = capsys.readouterr().out.splitlines()
    assert of_run[1:4] == of_prediction[1:4] and of_run[1].split() == ["metric", "value", "low", "high"]


def test_members_of_a_law_are_drawn_written_and_scored(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    eq = sb.equation("phi41", **SMALL, kappa=0.1)
    data = sb.generate(eq, n=40, seen=2, members=8, out="data")
    assert call("train", "deeponet", data, "seen=2", "loss=energy", "width=8", "epochs=1", "batch_size=14") == 0
    assert "energy_score" in capsys.readouterr().out
    (folder,) = Path("runs").iterdir()
    assert call("predict", folder, data, "--members", "6", "--out", "m.npy", "--json") == 0
    assert json.loads(capsys.readouterr().out)["shape"] == [6, 6, 11, 16]
    assert call("evaluate", "m.npy", "--truth", data, "--run", folder, "--json") == 0
    _, found = scores(capsys)
    assert {"energy_score", "crps", "coverage_90", "std_error"} <= set(found)
    assert call("evaluate", "m.npy", "--truth", data, "--part", "test", "--json") == 0  # without a run: the same law
    assert scores(capsys)[1] == found and "energy_distance" in found
    assert call("evaluate", "m.npy", "--truth", data) == 2
    assert "members of a law (N m T X..); they are scored for a part" in capsys.readouterr().err
    assert call("evaluate", folder, "--metrics", "crps,rel_l2", "--json") == 0
    assert list(scores(capsys)[1]) == ["crps", "rel_l2"]
    other = sb.generate(eq, n=40, seed=1, seen=2, members=8, out="data")
    for words in (["--truth", other, "--part", "test"], ["--truth", data, "--part", "val"]):  # stored, and not stored
        assert call("evaluate", folder, *words, "--json") == 0
        assert {"rel_l2", "energy_score", "crps", "coverage_90"} <= set(found := scores(capsys)[1])
        assert call("evaluate", folder, *words, "--metrics", "crps", "--json") == 0
        assert scores(capsys)[1] == {"crps": found["crps"]}
    assert call("evaluate", folder, *words, "--metrics", "std_error") == 2  # members are those of the test part
    assert "needs members of the true law for these samples" in capsys.readouterr().err
    assert call("predict", folder, data, "--members", "-1", "--out", "n.npy") == 2
    assert call("train", "nors", data, "seen=2", "loss=energy") == 2
    assert "'nors' are too costly; models that do: " in capsys.readouterr().err


def test_infinite_scores_are_explained(data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    u = np.array(sb.open_dataset(data).u)
    u[3, 5, 2] = np.nan
    np.save("nan.npy", u)
    assert call("evaluate", "nan.npy", "--truth", data, "--metrics", "rel_l2") == 0
    assert "NaN or infinite values in 1 of 40 samples" in capsys.readouterr().out
