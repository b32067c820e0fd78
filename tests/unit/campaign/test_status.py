"""What is done, running, failed and left, told from the folders alone, also while others work in them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import spdebench as sb
from spdebench.campaign import one_run, plan
from spdebench.campaign.deadline import Deadline
from spdebench.campaign.request import Campaign, campaigns
from spdebench.campaign.run import fill_missing
from spdebench.campaign.selection import matching
from spdebench.campaign.status import in_state, status
from spdebench.campaign.unit import Places, Unit
from spdebench.cli.main import main
from spdebench.data.generation_status import unfinished_datasets
from spdebench.errors import UserError
from spdebench.paper import catalogue
from spdebench.records import store as records
from tiny_tables import places, tiny_table, todo

CAMPAIGN = Campaign(tables=("tiny",), seeds=1, only="mean,deeponet")


@pytest.fixture
def where(tmp_path) -> Places:
    return places(tmp_path)


def look(where: Places):
    return status(where.runs, where.results, where.data, lambda name: tiny_table())


def go(where: Places, only: str):
    cells = Campaign(tables=("tiny",), seeds=1, only=only).cells(lambda name: tiny_table())
    return fill_missing(todo(cells, where), where, campaign=CAMPAIGN)


def test_done_failed_left_and_the_reason_goes_with_the_failure(where, monkeypatch, capsys):
    assert look(where).runs == [] == look(where).making
    real = one_run._train

    def diverges(spec, unit):
        raise UserError("it diverged at epoch 2")

    monkeypatch.setattr(one_run, "_train", diverges)
    assert {o.state for o in go(where, "mean")} == {"failed"}
    found = look(where)
    assert [(r["table"], r["runs"], r["done"], r["failed"], r["left"]) for r in found.rows()] == [("tiny", 4, 0, 2, 2)]
    assert {r.reason for r in in_state(found.runs, "failed")} == {"it diverged at epoch 2"}
    assert found.seconds > 0
    monkeypatch.setattr(catalogue, "table", lambda name: tiny_table())
    words = ["--runs", where.runs, "--results", where.results, "--data", where.data]
    with pytest.raises(SystemExit) as caught:
        main(["status", *words])
    out = capsys.readouterr().out
    assert not caught.value.code and out.count("it diverged at epoch 2") == 2 and "with 1 run at a time" in out
    monkeypatch.setattr(one_run, "_train", real)
    assert {o.state for o in go(where, "mean")} == {"added"}
    found = look(where)
    assert len(in_state(found.runs, "done")) == 2 and not in_state(found.runs, "failed")
    with pytest.raises(SystemExit):
        main(["status", "--json", *words])
    facts = json.loads(capsys.readouterr().out)
    assert facts["tables"][0]["left"] == 2 and len(facts["runs"]) == 4


def test_a_campaign_asked_for_twice_is_one_and_a_bad_one_is_one_line(where, tmp_path):
    for _ in range(2):
        CAMPAIGN.write(where.runs)
    assert campaigns(where.runs) == [CAMPAIGN]
    bad = tmp_path / "runs" / "campaign-bad.json"
    for text, message in (
        ('{"tables": ["tiny"], "sed": 1}', "did you mean 'seeds'"),
        ('{"tables": ["ti', r"campaign-bad\.json is not a campaign; remove it"),
        ("[]", r"campaign-bad\.json is not a campaign; remove it"),
    ):
        bad.write_text(text)
        with pytest.raises(UserError, match=message):
            look(where)
    bad.unlink()
    old = Campaign(tables=("tiny",), only="a-row-of-an-older-version")
    old.write(where.runs)
    with pytest.raises(
        UserError, match=f"{old.file_name}: --only: no row matches .*; remove the file, or load a table"
    ):
        look(where)


TRAIN = """
import sys
from spdebench.campaign import plan, one_run
from spdebench.campaign.unit import Places, Unit
from spdebench.campaign.selection import matching
from spdebench.campaign.deadline import Deadline
from spdebench.training import Fit
from tiny_tables import tiny_table
epoch = Fit.run_epoch
def slow(fit):
    if fit.epoch == 2:
        print("two", flush=True)
        sys.stdin.readline()
    return epoch(fit)
Fit.run_epoch = slow
places = Places(*sys.argv[1:4])
job = plan.jobs(matching(tiny_table().cells(1), "deeponet")[1:2], {}, places.runs)[0]
print(one_run.make_run(Unit(job.spec, {}, places, "cpu", Deadline.after(600))).state, flush=True)
"""


def test_running_is_seen_with_its_epoch_and_left_to_its_process(where):
    """Another process trains; who comes second does not wait for it before all else is done."""
    CAMPAIGN.write(where.runs)
    child = subprocess.Popen(
        [sys.executable, "-c", TRAIN, where.data, where.runs, where.results],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert child.stdout.readline() == "two\n"
    (running,) = in_state(look(where).runs, "running")
    assert (running.epoch, running.epochs) == (2, 3) and f"process {child.pid} on" in running.holder
    jobs = plan.jobs(matching(tiny_table().cells(1), "deeponet")[1:2], {}, where.runs)
    unit = Unit(jobs[0].spec, {}, where, "cpu", Deadline.after(600))
    assert one_run.make_run(unit).state == "busy"
    child.stdin.write("\n")
    child.stdin.close()
    assert child.stdout.readline() == "added\n" and child.wait(120) == 0
    assert one_run.make_run(unit).state == "known"  # and nothing is doubled
    assert len(records.read(where.results)) == 1
    assert [r.name for r in in_state(look(where).runs, "done")] == [running.name]


def test_data_in_the_making(tmp_path, monkeypatch):
    equation = sb.equation("phi41", points=16, truncation=8, steps=10, frames=10)
    seen = []

    def report(fresh, found, largest):
        seen.extend(unfinished_datasets(tmp_path))
        if len(seen) == 2:
            raise UserError("no more today")

    with pytest.raises(UserError, match="no more today"):
        sb.generate(equation, n=8, chunk=2, out=tmp_path, report=report)
    assert [(m.done, m.chunks) for m in seen] == [(1, 4), (2, 4)]
    assert all(m.holder and m.seconds > 0 for m in seen)
    (after,) = unfinished_datasets(tmp_path)
    assert not after.holder and after.failed == "no more today" and after.done == 2
    sb.generate(equation, n=8, chunk=2, out=tmp_path)
    assert unfinished_datasets(tmp_path) == []


def test_a_clock_that_jumps_moves_no_deadline(monkeypatch):
    deadline = Deadline.after(10_000.0)
    monkeypatch.setattr(time, "time", lambda: 4e9)  # a century on
    assert 9_000 < deadline.seconds_left <= 10_000
    elsewhere = Deadline(10_000.0, deadline.monotonic, deadline.wall, "another machine")
    assert elsewhere.seconds_left < 0  # it pauses, which loses nothing
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert (
        9_000 < deadline.seconds_left <= 10_000 and elsewhere.seconds_left == 10_000
    )  # and never grows beyond the budget
    assert 4_000 < deadline.earlier(5_000.0).seconds_left <= 5_000
