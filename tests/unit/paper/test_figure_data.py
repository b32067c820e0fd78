"""What records keep for figures: small, once, added to records that lack it, and never at the cost of a training."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from spdebench.campaign import one_run, plan
from spdebench.campaign.run import fill_missing
from spdebench.campaign.unit import Places
from spdebench.cli.main import main
from spdebench.paper import figure_data
from spdebench.paper.catalogue import table
from spdebench.records import FigureData, MetricValue, PartScores
from spdebench.records import store as records
from spdebench.records.fields import FieldData, PackedFields
from spdebench.training import open_run
from spdebench.training.folder import checkpoint_file
from tiny_figures import tiny_evolution, tiny_losses, tiny_moments
from tiny_tables import made_up, places, todo


@pytest.fixture(scope="module")
def cells():
    return [c for c in tiny_moments().cells(2) if c.group == "J=8" and c.model == "gt"]


@pytest.fixture(scope="module")
def made(tmp_path_factory, cells):
    folder = tmp_path_factory.mktemp("keeps")
    where = places(folder)
    fill_missing(todo(cells, where), where)
    return folder


@pytest.fixture
def copy(made, tmp_path):
    shutil.copytree(made, tmp_path / "t")
    return places(tmp_path / "t")


def forget(where: Places) -> None:
    """Take the blocks out of records and folders, as if an older version had made them."""
    for file in Path(where.runs).glob("*/record.json"):
        file.write_text(_without(file.read_text()))
    for file in Path(where.results).glob("*.jsonl"):
        file.write_text("".join(_without(line) for line in file.read_text().splitlines()))


def _without(text: str) -> str:
    return json.dumps({key: value for key, value in json.loads(text).items() if key != "figure_data"}) + "\n"


def test_the_first_seed_keeps_moments_and_the_second_does_not(made, cells):
    known = records.read(made / "results")
    first, second = (known[r.digest] for r in cells[0].runs)
    assert first.figure_data.names == ("moments",) and not second.figure_data.names
    assert all(j.status == "done" for j in todo(cells, places(made)))


def test_an_older_record_gets_its_block_without_training(copy, cells, monkeypatch):
    before = records.read(copy.results)
    forget(copy)
    assert [j.figure_data for j in todo(cells, copy)] == [("moments",), ()]
    monkeypatch.setattr(one_run, "train", lambda *a, **k: pytest.fail("trained again"))
    (outcome,) = fill_missing(todo(cells, copy), copy)
    assert outcome.state == "added"
    assert records.read(copy.results) == before
    lines = (Path(copy.results) / "phi41.jsonl").read_text().splitlines()
    assert "scores" not in json.loads(lines[-1])  # a short line of its own
    assert fill_missing(todo(cells, copy), copy) == []


def test_kept_predictions_are_used_and_made_where_they_are_not(copy, cells):
    forget(copy)
    folder = Path(copy.runs) / cells[0].runs[0].name
    (folder / "predictions.npy").unlink()
    expected = None
    for _ in range(2):
        fill_missing(todo(cells, copy), copy)
        found = records.read(copy.results)[cells[0].runs[0].digest].figure_data.moments
        assert expected is None or found == expected
        expected = found
        assert found.frames == (5, 10) and found.samples == 6
        assert found.step == pytest.approx(1 / 16) and len(found.true.mean[0]) == 16


def test_a_lost_folder_is_trained_again(copy, cells):
    """The record alone cannot say what was predicted."""
    before = records.read(copy.results)[cells[0].runs[0].digest].figure_data
    forget(copy)
    shutil.rmtree(copy.runs)
    jobs = todo(cells, copy)
    assert [j.status for j in jobs] == ["missing", "done"]
    fill_missing(jobs, copy)
    assert records.read(copy.results)[cells[0].runs[0].digest].figure_data == before


def test_a_run_made_for_a_table_keeps_what_a_figure_will_want(tmp_path):
    """Its folder may be gone when the figure is drawn; a run that is recorded is left alone."""
    name = "phi41-periodic-sigma1"
    cell = next(c for c in table(name).cells() if (c.group, c.row, c.column) == ("xi -> u", "FNO", "J=128"))
    assert not cell.figure_data
    assert [j.figure_data for j in plan.jobs([cell], {}, tmp_path)] == [("moments",), (), ()]
    known = {cell.runs[0].digest: made_up(cell.runs[0], 0.1)}
    assert [j.status for j in plan.jobs([cell], known, tmp_path)] == ["done", "missing", "missing"]
    (figure,) = (c for c in table("mean-variance").cells() if c.runs == cell.runs and c.metric == "rel_l2")
    assert plan.jobs([figure], known, tmp_path)[0].status == "missing"


def test_logs_are_thinned_and_keep_their_best(tmp_path):
    where = places(tmp_path)
    cells = [c for c in tiny_losses().cells(1) if c.row == "loss w12"]
    fill_missing(todo(cells, where), where)
    folder = tmp_path / "runs" / cells[0].runs[0].name
    entries = [{"epoch": k, "train": 1 / k, "val": 2 / k, "lr": 0.1, "seconds": 1.0} for k in range(1, 1001)]
    (folder / "log.jsonl").write_text("".join(json.dumps(e) + "\n" for e in entries))
    record = json.loads((folder / "record.json").read_text())
    (folder / "record.json").write_text(json.dumps(record | {"best_epoch": 777}))
    block = figure_data.log(open_run(folder), lambda: pytest.fail("the test part was read"))
    assert len(block.epoch) <= figure_data.EPOCHS and {1, 777, 1000} <= set(block.epoch)
    assert list(block.epoch) == sorted(block.epoch)
    assert block.val[block.epoch.index(777)] == pytest.approx(2 / 777, rel=1e-3)
    assert len(json.dumps(dataclasses.asdict(block))) < 2000


# --- fields -------------------------------------------------------------------------------------------------------
def test_the_plan_of_a_figure_names_a_recorded_run_that_is_made_again(tmp_path, capsys):
    """The record of the paper's run has scores on both grids but no fields, and its folder is gone."""
    cells = table("nse-evolution").cells(1)
    (run,) = cells[0].runs
    scored = {cells[1].part: PartScores({"rel_l2": MetricValue(0.3)})}
    known = {run.digest: dataclasses.replace(made_up(run, 0.1), shifts=scored)}
    (job,) = plan.jobs(cells, known, tmp_path, "cuda")
    assert (job.status, job.figure_data, job.lacking, dict(job.shifts)) == ("missing", ("fields",), ("fields",), {})
    assert plan.overview(cells, [job], tmp_path)["made_again"] == {run.name: ["fields"]}
    records.add(tmp_path / "results", known[run.digest])
    folders = [word for name in ("results", "runs", "data") for word in (f"--{name}", str(tmp_path / name))]
    with pytest.raises(SystemExit):
        main(["table", "nse-evolution", "--plan", "--seeds", "1", "--device", "cuda", *folders])
    assert "recorded runs that are made again: 1, because their records lack fields" in capsys.readouterr().out
    held = FieldData(0, (1,), (0.1,), {"16 x 16": PackedFields.of(np.zeros((1, 2, 2)))})
    known[run.digest] = dataclasses.replace(known[run.digest], figure_data=FigureData(fields=held))
    (job,) = plan.jobs(cells, known, tmp_path, "cuda")
    assert (job.status, job.lacking) == ("done", ())


def test_a_run_that_is_made_again_for_a_score_does_not_name_the_figure_data_that_its_record_has(tmp_path):
    """The new run keeps these data, too, but they are not the reason for it."""
    cells = table("nse-evolution").cells(1)
    (run,) = cells[0].runs
    held = FigureData(fields=FieldData(0, (1,), (0.1,), {"16 x 16": PackedFields.of(np.zeros((1, 2, 2)))}))
    known = {run.digest: dataclasses.replace(made_up(run, 0.1), figure_data=held)}
    (job,) = plan.jobs(cells, known, tmp_path, "cuda")
    assert (job.status, job.figure_data, job.lacking) == ("missing", ("fields",), (cells[1].part,))


def test_a_run_of_another_table_keeps_the_fields_that_a_figure_will_want(tmp_path):
    (figure, _) = table("nse-evolution").cells(1)
    (cell,) = (c for c in table("wave-kdv-kpz-nse").cells(1) if c.runs == figure.runs)
    assert not cell.figure_data
    assert [j.figure_data for j in plan.jobs([cell], {}, tmp_path)] == [("fields",)]


def test_fields_are_added_to_the_record_of_a_run_whose_weights_are_here(tmp_path, monkeypatch):
    """They are what the run predicts, rounded; when they are there, the weights are no longer needed."""
    where, cells = places(tmp_path), tiny_evolution().cells(1)
    fill_missing(todo(cells, where), where)
    (run,) = cells[0].runs
    forget(where)
    monkeypatch.setattr(one_run, "train", lambda *a, **k: pytest.fail("trained again"))
    fill_missing(todo(cells, where), where)
    held = records.read(where.results)[run.digest].figure_data.fields
    folder = Path(where.runs) / run.name
    kept = np.load(folder / "predictions.npy")[0, list(held.frames)]
    assert np.abs(held.grids["8 x 8"].values() - kept).max() <= 2**-15 * np.abs(kept).max()
    assert held.row == run.task_spec.rows(20)["test"][0]
    assert held.times == pytest.approx((0.1, 0.2, 0.3, 0.4, 0.5))
    checkpoint_file(folder, "best").unlink()
    assert [j.status for j in todo(cells, where)] == ["done"]
