"""A campaign that moves to another machine: records and small unfinished runs, the same numbers in the end."""

from __future__ import annotations

import dataclasses
import json
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from command_line import call
from spdebench.campaign import needs as needs_module
from spdebench.campaign import one_run, plan, portable, schedule
from spdebench.campaign.deadline import Deadline
from spdebench.campaign.needs import Needs, RunSettings
from spdebench.campaign.run import fill_missing
from spdebench.campaign.selection import matching
from spdebench.campaign.sharing import slowdown
from spdebench.campaign.unit import Unit
from spdebench.errors import UserError
from spdebench.records import store
from spdebench.training import Fit, Paused
from tiny_tables import places, tiny_table, todo


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """One machine finishes `mean` and is stopped in the second epoch of a DeepONet; another one takes over."""
    here, there = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("there")
    every, where = tiny_table().cells(1), places(here)
    cells = [*matching(every, "mean")[:1], *matching(every, "deeponet")[:1]]
    epoch, checkpoint = Fit.run_epoch, one_run.CHECKPOINT

    def stops(fit):
        if fit.epoch:
            signal.raise_signal(signal.SIGALRM)  # as the clock does at the end of the budget
        return epoch(fit)

    jobs = [dataclasses.replace(job, seconds=0.1) for job in todo(cells, where)]
    Fit.run_epoch, one_run.CHECKPOINT = stops, 0.0
    try:
        states = {o.state for o in fill_missing(jobs, where, budget=600, portable=here / "portable")}
    finally:
        Fit.run_epoch, one_run.CHECKPOINT = epoch, checkpoint
    assert states == {"added", "paused"}
    shutil.copytree(here / "portable", there / "portable")
    return here, there, cells


def test_another_machine_continues_and_gets_the_same_numbers(stopped, tmp_path):
    here, there, cells = stopped
    where = places(tmp_path)
    moved = portable.merge(there / "portable", where.results, where.runs)
    assert moved == portable.TransferCounts(1, 1)
    assert sorted(j.status for j in todo(cells, where)) == ["begun", "done"]
    assert portable.merge(there / "portable", where.results, where.runs) == portable.TransferCounts(0, 0)
    fill_missing(todo(cells, where), where)
    shutil.copytree(here / "data", tmp_path / "whole" / "data")
    whole = places(tmp_path / "whole")
    fill_missing(todo(cells, whole), whole)
    ours, expected = store.read(where.results), store.read(whole.results)
    assert ours.keys() == expected.keys()
    assert all(ours[d].scores == expected[d].scores and ours[d].epochs == expected[d].epochs for d in ours)


def test_an_export_follows_the_runs(stopped, tmp_path, monkeypatch):
    """When the run has ended, its checkpoint leaves the folder and its record enters."""
    here, _, cells = stopped
    shutil.copytree(here, tmp_path / "m")
    where = places(tmp_path / "m")
    jobs, read, readings = todo(cells, where), store.read, []
    monkeypatch.setattr(store, "read", lambda *folders: readings.append(folders) or read(*folders))
    fill_missing(jobs, where, portable=tmp_path / "m" / "portable")
    assert len(readings) <= 3  # at the beginning and at the end, and not after each run
    assert sorted(p.name for p in (tmp_path / "m" / "portable").iterdir()) == [portable.RECORDS, portable.UNFINISHED]
    assert portable.merge(tmp_path / "m" / "portable", tmp_path / "r", tmp_path / "runs") == portable.TransferCounts(
        2, 0
    )


def test_runs_that_cannot_be_read_are_left_out_of_an_export_and_stop_nothing(stopped, tmp_path):
    here, _, cells = stopped
    shutil.copytree(here, tmp_path / "m")
    where = places(tmp_path / "m")
    for name, file in (("damaged", "record.json"), ("foreign", "spec.json"), ("foreign", "last.safetensors")):
        (tmp_path / "m" / "runs" / name).mkdir(exist_ok=True)
        (tmp_path / "m" / "runs" / name / file).write_text("{}")
    with pytest.warns(UserWarning, match="(damaged|foreign) is not exported: ") as warned:
        outcomes = fill_missing(todo(cells, where), where, portable=tmp_path / "m" / "portable")
    assert {o.state for o in outcomes} == {"added"} and len(warned) >= 2
    assert portable.merge(tmp_path / "m" / "portable", tmp_path / "r", tmp_path / "runs") == portable.TransferCounts(
        2, 0
    )


def test_a_checkpoint_that_its_run_removes_during_an_export_stops_nothing(stopped, tmp_path, monkeypatch):
    """The run ends after the export has found its checkpoint and before it asks for its size."""
    here, _, _ = stopped
    shutil.copytree(here / "runs", tmp_path / "runs")
    is_file = Path.is_file

    def found_and_removed(path):
        found = is_file(path)
        if path.name == "last.safetensors":
            path.unlink()
        return found

    monkeypatch.setattr(Path, "is_file", found_and_removed)
    assert portable.export(tmp_path / "portable", {}, tmp_path / "runs") == portable.TransferCounts(1, 0)


def test_a_run_that_trains_is_exported_before_it_ends(stopped, tmp_path, monkeypatch):
    """The machine may be lost while its only run trains: another one continues from the last export."""
    _, there, cells = stopped
    where = places(tmp_path)
    portable.merge(there / "portable", where.results, where.runs)
    monkeypatch.setattr(portable, "SHORTEST_PAUSE", 0.01)
    monkeypatch.setattr(one_run, "CHECKPOINT", 0.0)
    epoch, exported, seen = Fit.run_epoch, tmp_path / "portable" / portable.UNFINISHED, []

    def waits_for_an_export(fit):
        deadline = time.monotonic() + 20
        while fit.epoch == 2 and time.monotonic() < deadline:
            entries = json.loads(exported.read_text()) if exported.is_file() else {}
            seen[:] = [len(entry["log"]) for entry in entries.values()]
            if seen == [2]:
                break
            time.sleep(0.01)
        return epoch(fit)

    monkeypatch.setattr(Fit, "run_epoch", waits_for_an_export)
    fill_missing(todo(cells, where), where, portable=tmp_path / "portable")
    assert seen == [2]  # epochs in the log of the run that was training
    assert json.loads(exported.read_text()) == {}


def test_a_slow_export_is_not_repeated_at_once(tmp_path, monkeypatch):
    """The first takes 2 seconds: the next begins 18 seconds after its end. The second fails, which stops nothing."""
    clock, pauses, made = [100.0], [], []

    class Ended(threading.Event):
        def wait(self, pause):
            pauses.append(pause)
            return len(pauses) > 3

    def export(folder, known, runs):
        made.append(clock[0])
        if len(made) > 1:
            raise UserError("no space left")
        clock[0] += 2.0

    monkeypatch.setattr(portable, "export", export)
    monkeypatch.setattr(portable.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(portable.threading, "Event", Ended)
    periodic = portable.PeriodicExport(tmp_path, {}, tmp_path)
    with pytest.warns(UserWarning, match="nothing was exported to .*no space left") as warned:
        periodic._repeat()
    assert pauses == [portable.SHORTEST_PAUSE, 18.0, portable.SHORTEST_PAUSE, portable.SHORTEST_PAUSE]
    assert len(made) == 3 and len(warned) == 1


@pytest.mark.parametrize("damage", ["name", "file", "checkpoint", "record", "empty"])
def test_a_damaged_folder_is_one_line_and_adds_nothing(stopped, tmp_path, damage):
    folder = tmp_path / "portable"
    shutil.copytree(stopped[1] / "portable", folder)
    entries = json.loads((folder / portable.UNFINISHED).read_text())
    (name,) = entries
    if damage == "name":
        entries["../elsewhere"] = entries.pop(name)
    elif damage == "file":
        entries[name]["file"] = "../../secret.last.safetensors"
    elif damage == "checkpoint":
        (folder / entries[name]["file"]).write_bytes(b"nothing")
    elif damage == "record":
        (folder / portable.RECORDS).write_text("{}\n")
    else:
        (folder / portable.RECORDS).unlink()
    (folder / portable.UNFINISHED).write_text(json.dumps(entries))
    with pytest.raises(UserError, match="copy the folder again" if damage == "checkpoint" else None):
        portable.merge(folder, tmp_path / "results", tmp_path / "runs")
    assert not list(tmp_path.glob("results/*")) and not (tmp_path / "runs").exists()


def test_a_large_model_only_starts_if_it_can_end(tmp_path, monkeypatch):
    where = places(tmp_path)
    (job,) = todo(matching(tiny_table().cells(1), "deeponet")[:1], where)
    unit = Unit(job.spec, {}, where, "cpu", Deadline.after(50), seconds=60.0, portable=True)
    monkeypatch.setattr(one_run, "_make", lambda unit: (_ for _ in ()).throw(UserError("it started")))
    assert one_run.make_run(unit).message == "it started"  # small: its checkpoint can be carried on
    monkeypatch.setattr(one_run, "SMALL_MODEL", 10)
    assert one_run.make_run(unit).state == "left"
    assert one_run.make_run(dataclasses.replace(unit, seconds=40.0)).message == "it started"
    assert one_run.make_run(dataclasses.replace(unit, portable=False)).message == "it started"


def test_a_budget_is_scheduled_by_numbers_per_second(tmp_path, monkeypatch):
    """Two runs of 10 and 20 seconds, the longer with three numbers; only runs that end are made."""
    cells = tiny_table().cells(1)
    jobs = [
        dataclasses.replace(job, seconds=10.0 * (k + 1), counts_for=frozenset(range(3 * k)))
        for k, job in enumerate(todo(matching(cells, "deeponet"), places(tmp_path)))
    ]
    monkeypatch.setattr(needs_module, "gpu_share", lambda run: 0.75)
    needs = Needs({}, 2, thrifty=True)
    one = schedule.schedule(jobs, needs, 1, 35.0)
    assert [s.job.numbers for s in one] == [3, 0] and [s.start for s in one] == [0.0, 20.0]
    assert [s.job.numbers for s in schedule.schedule(jobs, needs, 1, 15.0)] == [0]  # the other cannot end
    both = schedule.schedule(jobs, needs, 2, 35.0, "cuda")
    assert [s.start for s in both] == [0.0, 0.0]
    # both take 1.5 times as long until the shorter one has ended; the other is alone then
    assert [s.seconds for s in both] == pytest.approx([10.0 * slowdown(2 * 0.75) + 10.0, 10.0 * slowdown(2 * 0.75)])
    facts = schedule.schedule_facts(jobs, {}, RunSettings(workers=2), ["cuda"], 35.0)
    assert [row["numbers"] for row in facts["runs"]] == [3, 0] and facts["published"] == 3 and facts["rows"] == 0


def test_a_run_that_waits_for_pilots_is_scheduled_after_them(tmp_path):
    first, second = todo(matching(tiny_table().cells(1), "deeponet"), places(tmp_path))
    pilot = dataclasses.replace(first, seconds=10.0, pilot=True, counts_for=frozenset([1]))
    run = dataclasses.replace(second, seconds=10.0, counts_for=frozenset([1]))
    waits = [plan.WaitingRun(run, frozenset([first.spec.digest]))]
    made = schedule.schedule([pilot], Needs({}, thrifty=True), 2, 25.0, waiting=waits)
    assert [(s.job.pilot, s.start) for s in made] == [(True, 0.0), (False, 10.0)]
    assert schedule.schedule_facts([pilot], {}, RunSettings(), ["cpu"], 15.0, waits)["published"] == 0


def test_what_cannot_end_comes_after_what_can(tmp_path, monkeypatch):
    """With a budget: 100 seconds are too long, 1 second is not; the long run is begun at last and paused."""
    where = places(tmp_path)
    jobs = todo(matching(tiny_table().cells(1), "deeponet"), where)
    long = dataclasses.replace(jobs[0], seconds=100.0, counts_for=frozenset(range(99)))
    short = dataclasses.replace(jobs[1], seconds=1.0, counts_for=frozenset())
    begun = []

    def make(unit):
        begun.append(unit.spec.name)
        raise Paused

    monkeypatch.setattr(one_run, "_make", make)
    assert Needs({}, thrifty=True).ordered([short, long]) == [long, short]
    fill_missing([long, short], where, budget=50)
    assert begun == [short.spec.name, long.spec.name]


def test_on_the_command_line(stopped, tmp_path, capsys):
    results, runs = tmp_path / "r", tmp_path / "runs"
    assert call("merge", stopped[1] / "portable", "--results", results, "--runs", runs) == 0
    assert "1 records added" in capsys.readouterr().out
    assert call("merge", tmp_path, "--results", tmp_path / "r2") == 2
    assert "table --portable" in capsys.readouterr().err and not (tmp_path / "r2").exists()
    assert call("table", "phi41-periodic", "--portable", tmp_path / "p") == 2
    assert "--portable is the folder to which --run exports" in capsys.readouterr().err
    assert call("table", "phi41-periodic", "--plan", "--budget", "10m", "--device", "cuda", "--seeds", "1") == 0
    assert "within the budget" in capsys.readouterr().out
