"""What records keep for figures: small, once, added to records that lack it, and never at the cost of a training."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from spdebench.campaign import one_run, plan
from spdebench.campaign.one_run import Places
from spdebench.campaign.run import fill_missing
from spdebench.paper import figure_data
from spdebench.paper.catalogue import table
from spdebench.records import store as records
from spdebench.training import open_run
from tiny_figures import tiny_losses, tiny_moments
from tiny_tables import made_up


def places(folder) -> Places:
    return Places(str(folder / "data"), str(folder / "runs"), str(folder / "results"))


def todo(cells, where: Places) -> list[plan.Job]:
    return plan.jobs(cells, records.read(where.results), where.runs)


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
