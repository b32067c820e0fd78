"""Filling a table: every run once, added at once; stopped and continued, collected, refused in one line."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import math
import shutil
import signal
import time
from pathlib import Path

import pytest

from spdebench import engines
from spdebench.campaign import exclusive_timing, one_run, plan, portable, run
from spdebench.campaign.deadline import FOREVER, Deadline
from spdebench.campaign.needs import RunSettings
from spdebench.campaign.run import fill_missing
from spdebench.campaign.selection import matching
from spdebench.data import generate, open_dataset
from spdebench.errors import UserError
from spdebench.metrics import evaluate
from spdebench.models import OperatorModel
from spdebench.paper.fill import fill
from spdebench.records import MetricValue
from spdebench.records import store as records
from spdebench.records.record import FLOOR
from spdebench.records.times import share_times
from spdebench.training import Diverged, Fit, Paused, checkpoints, open_run, part_for, scoring, solver_row
from spdebench.training.provenance import device_name
from spdebench.training.scoring import predict_part
from spdebench.version import made_with
from tiny_tables import made_up, places, tiny_table, todo

making = importlib.import_module("spdebench.data.generate")  # the module, which its function hides


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The tiny table filled once, for the tests that look at it or build on it."""
    folder = tmp_path_factory.mktemp("table")
    where, cells = places(folder), tiny_table().cells(2)
    return folder, fill_missing(todo(cells, where), where)


@pytest.fixture
def copy(whole, tmp_path):
    shutil.copytree(whole[0], tmp_path / "t")
    return places(tmp_path / "t")


def test_everything_is_filled(whole):
    folder, outcomes = whole
    where = places(folder)
    assert {o.state for o in outcomes} == {"added"}, outcomes
    seeds = [o.record.options.get("seed", 0) for o in outcomes]
    assert seeds == sorted(seeds)  # one seed of everything first
    found = fill(tiny_table(), records.read(where.results), 2)
    assert not found.missing() and found.done == len(found.entries)
    group = found.groups[0]
    assert group.entries["DeepONet", "J=4"].seeds_done == 2 and group.entries["mean", "J=4"].seeds_done == 1
    assert group.entries["solver", "J=4"].mean < 1e-6 < group.entries["solver vs fine reference", "J=4"].mean < 0.1
    assert group.inference_ms("solver") > 0 and group.inference_ms("DeepONet") > 0
    moved = found.groups[1].entries
    assert moved["DeepONet", "fresh"].samples.shape == (20,) and moved["DeepONet", "J=8"].samples.shape == (6,)
    assert all(j.status == "done" for j in todo(tiny_table().cells(2), where))
    record = records.read(where.results)[moved["DeepONet", "fresh"].digests[0]]
    assert set(record.shifts) == {"truncation=8", "fresh"} and record.exclusive_timing
    assert len(list((folder / "data").glob("*.parquet"))) == 3
    kept = {p.parent.name for p in (folder / "runs").glob("*/predictions.npy")}
    assert kept == {o.name for o in outcomes if o.record.model != "solver" and not o.record.options["seed"]}


def test_a_second_time_nothing_is_made(copy, monkeypatch):
    monkeypatch.setattr(one_run, "train", lambda *a, **k: pytest.fail("trained again"))
    assert fill_missing(todo(tiny_table().cells(2), copy), copy) == []


def test_lost_records_are_collected_without_training(copy, monkeypatch):
    shutil.rmtree(copy.results)
    shutil.rmtree(copy.data)
    monkeypatch.setattr(one_run, "train", lambda *a, **k: pytest.fail("trained again"))
    before = todo(tiny_table().cells(2), copy)
    finished = [j.spec.name for j in before if not j.shifts]
    assert {j.status for j in before if not j.shifts} == {"finished"}
    looked_at: list[str] = []
    has_record = one_run.has_record
    monkeypatch.setattr(run, "has_record", lambda where, spec: looked_at.append(spec.name) or has_record(where, spec))
    outcomes = fill_missing(before, copy, budget=600)
    assert {o.state for o in outcomes} == {"added"}
    assert looked_at == finished  # once each
    assert all(j.status == "done" for j in todo(tiny_table().cells(2), copy))


def test_a_further_shift_needs_no_training(copy, monkeypatch):
    table = tiny_table()
    extra = dataclasses.replace(table.wants[-1], part="again", column="again")
    cells = dataclasses.replace(table, wants=(*table.wants, extra)).cells(2)
    monkeypatch.setattr(one_run, "train", lambda *a, **k: pytest.fail("trained again"))
    outcomes = fill_missing(todo(cells, copy), copy)
    assert [o.state for o in outcomes] == ["added", "added"]
    assert all("again" in records.read(copy.results)[o.record.digest].shifts for o in outcomes)


def test_an_export_while_runs_are_made_keeps_what_only_the_results_have(copy, tmp_path, monkeypatch):
    """A score that another machine has added to a record is not in the folder of the run."""
    table = tiny_table()
    extra = dataclasses.replace(table.wants[-1], part="again", column="again")
    cells = dataclasses.replace(table, wants=(*table.wants, extra)).cells(1)
    (job,) = (j for j in todo(cells, copy) if j.shifts)
    known = records.read(copy.results)[job.spec.digest]
    records.add(copy.results, dataclasses.replace(known, scores={**known.scores, "elsewhere": MetricValue(0.5)}))
    monkeypatch.setattr(run, "export", lambda *_: None)  # the last one, when all runs have been made
    fill_missing([job], copy, portable=tmp_path / "portable")
    portable.merge(tmp_path / "portable", tmp_path / "there", tmp_path / "runs")
    moved = records.read(tmp_path / "there")[job.spec.digest]
    assert "again" in moved.shifts and moved.scores["elsewhere"].value == 0.5


def test_a_further_metric_needs_no_training_if_the_runs_are_there(copy, monkeypatch):
    """A metric that runs are not scored by as a rule: scored later on every part, also for the solver's rows."""
    table, metric = tiny_table(), "rel_l1"
    asked = [
        dataclasses.replace(w, metric=metric, column=f"{metric} {w.column}") for w in table.wants if w.part != FLOOR
    ]
    more = dataclasses.replace(table, wants=(*table.wants, *asked))
    cells, known = more.cells(1), records.read(copy.results)
    elsewhere = plan.jobs(cells, known, "no-folder")  # without the folders of the runs they are made again, and why
    assert {j.lacking for j in elsewhere if j.spec.model == "mean"} == {(metric,)}
    monkeypatch.setattr(one_run, "train", lambda *a, **k: pytest.fail("trained again"))
    outcomes = fill_missing(todo(cells, copy), copy)
    assert {o.state for o in outcomes} == {"added"}
    assert fill_missing(todo(cells, copy), copy) == []
    found = fill(more, records.read(copy.results), 1)
    assert not found.missing() and all(math.isfinite(e.mean) for e in found.entries)
    entry = found.groups[1].entries["DeepONet", f"{metric} fresh"]
    one = open_run(Path(copy.runs) / entry.records[0].name)
    part = part_for(one, next(Path(copy.data).glob("*n20-seed1*.parquet")), "all")
    again = evaluate(predict_part(one.model, part), part.u, part.grid, metrics=[metric], resamples=0)
    assert entry.mean == pytest.approx(again[metric].value, rel=1e-5)
    solver = found.groups[0].entries["solver", f"{metric} J=4"]
    assert solver.mean < 1e-5 < found.groups[0].entries["mean", f"{metric} J=4"].mean


def test_a_run_stopped_by_its_budget_and_continued_has_the_same_result(whole, tmp_path, monkeypatch):
    """The budget ends in the second epoch; what follows gives the uninterrupted numbers."""
    where = places(tmp_path)
    shutil.copytree(whole[0] / "data", where.data)
    cells = matching(tiny_table().cells(1), "deeponet")[:1]
    epoch = Fit.run_epoch

    def slow(fit):
        if fit.epoch:
            signal.raise_signal(signal.SIGALRM)  # as the clock does at the end of the budget
        return epoch(fit)

    monkeypatch.setattr(one_run, "CHECKPOINT", 0.0)
    monkeypatch.setattr(Fit, "run_epoch", slow)
    jobs = [dataclasses.replace(j, seconds=0.1) for j in todo(cells, where)]
    outcomes = fill_missing(jobs, where, budget=600)
    assert [(o.state, o.message) for o in outcomes] == [("paused", "its checkpoint is written")]
    assert records.read(where.results) == {} and [j.status for j in todo(cells, where)] == ["begun"]
    monkeypatch.setattr(Fit, "run_epoch", epoch)
    (outcome,) = fill_missing(todo(cells, where), where)
    expected = records.read(places(whole[0]).results)[outcome.record.digest]
    assert outcome.record.scores == expected.scores and outcome.record.samples == expected.samples
    assert outcome.record.epochs == expected.epochs == 3


def test_before_its_budget_ends_a_run_writes_what_it_has(whole, tmp_path, monkeypatch):
    """A large network's checkpoints are far apart: what was learned since the last one must not be lost."""
    where = places(tmp_path)
    shutil.copytree(whole[0] / "data", where.data)
    cells = matching(tiny_table().cells(1), "deeponet")[:1]
    monkeypatch.setattr(one_run, "CHECKPOINT", 1e6)
    left = iter((600.0, 600.0, 1.0))  # before the run, after its first epoch, after its second
    deadline = type("Clock", (), {"seconds": FOREVER, "left": property(lambda self: next(left))})()
    unit = one_run.Unit(todo(cells, where)[0].spec, {}, where, "cpu", deadline)
    assert one_run.make_run(unit).state == "paused"
    state = checkpoints.load(next((tmp_path / "runs").glob("*/last.safetensors")), unit.spec.digest)
    assert state["epoch"] == 2
    (outcome,) = fill_missing(todo(cells, where), where)
    assert outcome.record.scores == records.read(places(whole[0]).results)[outcome.record.digest].scores


def test_the_clock_ends_a_run(tmp_path, monkeypatch):
    where = places(tmp_path)
    monkeypatch.setattr(one_run, "_make", lambda unit: time.sleep(600))
    jobs = [dataclasses.replace(j, seconds=0.1) for j in todo(tiny_table().cells(1), where)][:2]
    start = time.monotonic()
    for budget in (0.2, 2.0, 20.0, 200.0):
        first, second = fill_missing(jobs, where, budget=budget)
        if first.state != "left":  # it is left on a machine that takes longer than the budget before the first run
            break
    assert (first.state, second.state) == ("paused", "left") and time.monotonic() - start < 600
    assert first.message == "without a checkpoint: it begins anew next time"  # it was not in training yet


def test_after_the_deadline_nothing_is_started(whole, tmp_path):
    where = places(tmp_path)
    cells = matching(tiny_table().cells(1), "deeponet")
    unit = one_run.Unit(todo(cells, where)[0].spec, {}, where, "cpu", Deadline.after(-1))
    assert one_run.make_run(unit).state == "left" and not (tmp_path / "runs").exists()


def test_a_budget_too_small_is_one_line(tmp_path):
    where = places(tmp_path)
    jobs = [dataclasses.replace(j, seconds=60.0) for j in todo(tiny_table().cells(1), where)]
    with pytest.raises(UserError, match=r"a budget of 5 s is too small for even one run: .* takes about 60 s"):
        fill_missing(jobs, where, budget=5)


def test_results_that_cannot_be_written_stop_before_training(tmp_path):
    (tmp_path / "results").write_text("a file")
    where = places(tmp_path)
    jobs = plan.jobs(tiny_table().cells(1), {}, where.runs)
    with pytest.raises(UserError, match="choose another with --results"):
        fill_missing(jobs, where)
    assert not (tmp_path / "runs").exists() and not (tmp_path / "data").exists()


def test_results_lost_on_the_way_keep_the_run(whole, tmp_path, monkeypatch):
    """The folder of records fails after training: the run stays, and the next command collects it."""
    where = places(tmp_path)
    shutil.copytree(whole[0] / "data", where.data)
    cells = matching(tiny_table().cells(1), "mean")[:1]
    real = records.add

    def full(folder, record):
        raise UserError(f"cannot write {folder} (No space left on device)")

    monkeypatch.setattr(records, "add", full)
    (outcome,) = fill_missing(todo(cells, where), where)
    assert outcome.state == "unrecorded" and "No space left" in outcome.message
    monkeypatch.setattr(records, "add", real)
    assert [j.status for j in todo(cells, where)] == ["finished"]
    assert [o.state for o in fill_missing(todo(cells, where), where)] == ["added"]


def test_one_failure_stops_nothing_else(whole, tmp_path, monkeypatch, capfd):
    where = places(tmp_path)
    shutil.copytree(whole[0] / "data", where.data)
    cells = matching(tiny_table().cells(1), "mean")
    real = one_run._train
    broken = iter([UserError("it diverged"), ValueError("a fault")])

    def some(spec, unit):
        if error := next(broken, None):
            raise error
        return real(spec, unit)

    monkeypatch.setattr(one_run, "_train", some)
    outcomes = fill_missing(todo(cells, where), where)
    assert [(o.state, o.message) for o in outcomes] == [("failed", "it diverged"), ("failed", "ValueError: a fault")]
    assert "Traceback" in capfd.readouterr().err  # the fault, not the user's mistake
    assert [o.state for o in fill_missing(todo(cells, where), where)] == ["added", "added"]


def test_a_pilot_that_diverges_is_recorded_and_not_tried_again(whole, tmp_path, monkeypatch):
    """Another run that diverges has failed."""
    where = places(tmp_path)
    shutil.copytree(whole[0] / "data", where.data)
    first = matching(tiny_table().cells(1), "deeponet")[:1]
    cells = [dataclasses.replace(first[0], pilots=first[0].runs)]

    def diverges(fit):
        raise Diverged("loss became non-finite")

    monkeypatch.setattr(Fit, "run_epoch", diverges)
    assert [o.state for o in fill_missing(todo(first, where), where)] == ["failed"]
    assert [o.state for o in fill_missing(todo(cells, where), where, portable=tmp_path / "portable")] == ["added"]
    (record,) = records.read(where.results).values()
    assert math.isnan(record.val) and not record.scores
    assert [j.status for j in todo(cells, where)] == ["done"]
    assert portable.merge(tmp_path / "portable", tmp_path / "there", tmp_path / "runs2").records == 1


def test_runs_side_by_side_and_their_times(whole, tmp_path):
    """Two processes share the work; times are then measured again while nothing else runs."""
    where = places(tmp_path)
    shutil.copytree(whole[0] / "data", where.data)
    cells = matching(tiny_table().cells(1), "mean,solver")
    outcomes = fill_missing(todo(cells, where), where, RunSettings(workers=2))
    assert {o.state for o in outcomes} == {"added"} and len(outcomes) == 4
    lines = [json.loads(line) for line in (tmp_path / "results" / "phi41.jsonl").read_text().splitlines()]
    assert not any(r.get("exclusive_timing") for r in lines[:4])
    assert [r["model"] for r in lines[4:] if r["exclusive_timing"]] and {r["model"] for r in lines[4:]} == {
        "mean",
        "solver",
    }
    found = records.read(where.results)
    for model in ("mean", "solver"):
        assert len({r.inference_ms for r in found.values() if r.model == model}) == 1


def test_a_time_measured_on_a_shared_device_is_none(tmp_path):
    """Until one run of its kind is timed exclusively, a run that shared its device has no time."""
    cells = matching(tiny_table().cells(1), "mean")
    first, later = (made_up(cell.runs[0], 0.1, shared_device=True) for cell in cells[:2])
    found = share_times({r.digest: r for r in (first, later)})
    assert [r.value("inference_ms") for r in found.values()] == [None, None]
    timed = dataclasses.replace(later, exclusive_timing=True, inference_ms=0.25)
    found = share_times({r.digest: r for r in (first, timed)})
    assert [r.inference_ms for r in found.values()] == [0.25, 0.25]


def test_times_are_measured_at_one_batch_however_small_the_test_part(whole, monkeypatch):
    """In the run, after it and for the solver: 100 samples, those of 6 repeated, or fewer if memory holds no more."""
    found = {o.record.model: o.record for o in whole[1]}
    assert len(found) > 2 and {r.inference_batch for r in found.values()} == {100}
    seen: list[int] = []
    for name, owner in (("predict", OperatorModel), ("solve", solver_row)):
        before = getattr(owner, name)

        def counted(*arguments, before=before, **others):
            seen.append(len(arguments[1]))
            return before(*arguments, **others)

        monkeypatch.setattr(owner, name, counted)
    for model in ("deeponet", "solver"):
        timed = exclusive_timing.timed(found[model], "cpu")
        assert timed is not None and timed.inference_batch == 100 and set(seen) == {100}
        seen.clear()
    monkeypatch.setattr(scoring, "evaluation_batch", lambda _: 7)
    timed = exclusive_timing.timed(found["deeponet"], "cpu")
    assert timed is not None and timed.inference_batch == 7 and set(seen) == {7}
    known = dataclasses.replace(found["deeponet"], exclusive_timing=False)
    addition = timed.addition_to(known)
    assert addition is not None and known.with_addition(addition).inference_batch == 7
    other = dataclasses.replace(known, digest="another seed", shared_device=True)
    assert share_times({"a": timed, "b": other})["b"].inference_batch == 7


def test_a_time_that_depends_on_the_fit_is_not_shared(tmp_path):
    """Two runs of step may have chosen steps of different cost; a run without its weights cannot be timed again."""
    cells = matching(tiny_table().cells(1), "mean")
    first, later = (made_up(cell.runs[0], 0.1, model="step", shared_device=True) for cell in cells[:2])
    timed = dataclasses.replace(later, exclusive_timing=True, inference_ms=0.25)
    found = share_times({r.digest: r for r in (first, timed)})
    assert [r.inference_ms for r in found.values()] == [None, 0.25]
    here = dataclasses.replace(first, provenance=dataclasses.replace(first.provenance, device=device_name("cpu")))
    assert exclusive_timing.timed(here, "cpu") is None


def test_while_another_command_runs_nothing_is_timed(whole, tmp_path, monkeypatch):
    """A run in progress anywhere in the folder: what ends meanwhile shared its device, and nothing is timed again."""
    where = places(tmp_path)
    shutil.copytree(whole[0] / "data", where.data)
    cells = matching(tiny_table().cells(1), "mean")
    with engines.locked(tmp_path / "runs" / "somebody-else"):
        assert {o.state for o in fill_missing(todo(cells, where), where)} == {"added"}
    found = records.read(where.results).values()
    assert all(r.shared_device and not r.exclusive_timing and r.inference_ms is None for r in found)
    with monkeypatch.context() as patch:
        patch.setattr(exclusive_timing, "timed", lambda *_: 1 / 0)
        with pytest.warns(UserWarning, match=r"of mean-phi41-\w+ was not measured \(ZeroDivisionError: "):
            assert fill_missing(todo(cells, where), where, portable=tmp_path / "portable") == []
        assert (tmp_path / "portable" / portable.RECORDS).read_text().count("\n") == len(found)
    fill_missing(todo(cells, where), where)  # nothing to make, and now nothing else runs
    assert all(r.inference_ms for r in records.read(where.results).values())


def test_a_time_measured_among_others_is_not_exclusive_when_more_scores_are_added_alone(whole, tmp_path, monkeypatch):
    """The run is not made again, so its time stays the one that was measured while it shared its device."""
    where, table = places(tmp_path), tiny_table()
    shutil.copytree(whole[0] / "data", where.data)
    with engines.locked(tmp_path / "runs" / "somebody-else"):
        fill_missing(todo(matching(table.cells(1), "mean"), where), where)
    wants = tuple(dataclasses.replace(w, metric="rel_l1") for w in table.wants if w.part != FLOOR)
    monkeypatch.setattr(exclusive_timing, "timed", lambda *_: None)
    monkeypatch.setattr(one_run, "train", lambda *a, **k: pytest.fail("trained again"))
    cells = matching(dataclasses.replace(table, wants=wants).cells(1), "mean")
    assert {o.state for o in fill_missing(todo(cells, where), where)} == {"added"}
    found = records.read(where.results).values()
    assert all("rel_l1" in r.scores and not r.exclusive_timing and r.inference_ms is None for r in found)


def test_a_run_remembers_that_it_shared_its_device_until_it_is_recorded(whole, tmp_path, monkeypatch):
    """It is stopped between its training and its scores on other data, and another command ends it alone."""
    where = places(tmp_path)
    shutil.copytree(whole[0] / "data", where.data)
    cells = matching(tiny_table().cells(1), "deeponet")
    job = next(j for j in todo(cells, where) if j.shifts)

    def stops(*_, **__):
        raise Paused

    for others, name in ((True, "shared"), (False, "alone")):
        at = dataclasses.replace(where, runs=str(tmp_path / name / "runs"), results=str(tmp_path / name / "results"))
        with monkeypatch.context() as patch, contextlib.ExitStack() as stack:
            patch.setattr(one_run, "score_on", stops)
            if others:
                stack.enter_context(engines.locked(Path(at.runs) / "somebody-else"))
            assert [o.state for o in fill_missing([job], at)] == ["paused"]
        monkeypatch.setattr(exclusive_timing, "timed", lambda *_: None)
        (outcome,) = fill_missing([j for j in todo(cells, at) if j.spec == job.spec], at)
        (record,) = records.read(at.results).values()
        assert outcome.state == "added" and record.shifts
        assert (record.shared_device, record.exclusive_timing) == (others, not others)
        assert (record.inference_ms is None) is others


def test_the_budget_also_ends_the_measurement_of_times(tmp_path, monkeypatch):
    """A solver that needs minutes for its samples is not timed beyond the end of the budget."""
    where = places(tmp_path)
    cells = matching(tiny_table().cells(1), "mean")[:1]
    records.add(where.results, made_up(cells[0].runs[0], 0.1, shared_device=True))
    monkeypatch.setattr(exclusive_timing, "timed", lambda *_: time.sleep(600))
    start = time.monotonic()
    exclusive_timing.time_exclusively(
        todo(cells, where), where.runs, where.results, ("cpu",), "local", Deadline.after(0.5)
    )
    assert time.monotonic() - start < 300


def test_a_mixture_is_trained_together_and_tested_apart(whole, tmp_path):
    """Trained on two truncations, tested on each by the same split: no test path is trained on at any J."""
    where = places(tmp_path)
    shutil.copytree(whole[0] / "data", where.data)
    table = tiny_table()
    both = tuple(w.data[0] for w in table.wants[:2])
    wants = tuple(
        dataclasses.replace(table.wants[0], data=both, column=label, part=label, test=one, group="mixed")
        for label, one in zip(("truncation=4", "truncation=8"), both, strict=True)
    )
    cells = dataclasses.replace(table, wants=wants).cells(1)
    (outcome,) = fill_missing(todo(cells, where), where)
    assert outcome.state == "added", outcome.message
    assert len(outcome.record.datasets) == 2 and len(outcome.record.samples["rel_l2"]) == 12
    assert {label: len(s.samples["rel_l2"]) for label, s in outcome.record.shifts.items()} == {
        "truncation=4": 6,
        "truncation=8": 6,
    }
    apart = [x for s in outcome.record.shifts.values() for x in s.samples["rel_l2"]]
    assert sorted(apart) == pytest.approx(sorted(outcome.record.samples["rel_l2"]), rel=1e-3)


def test_data_are_made_once_between_processes(tmp_path):
    spec = tiny_table().wants[0].data[0].spec()
    made = one_run.ensure_dataset(spec, str(tmp_path), "cpu")
    assert made == one_run.ensure_dataset(spec, str(tmp_path), "cpu") == generate(spec.equation, n=spec.n, out=tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [spec.file_name]


def test_force_reaches_the_chunks_of_data(tmp_path, monkeypatch):
    """Chunks of another version are refused, and with force the run is made of them."""
    where = places(tmp_path)
    monkeypatch.setattr(one_run, "_TASKS", {})  # tasks that other tests have left in memory
    jobs = todo(matching(tiny_table().cells(1), "mean")[:1], where)
    dataset = tiny_table().wants[0].data[0].spec()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(making, "made_with", lambda *given: made_with(*given) | {"spdebench": "0.0.9"})
        patch.setattr(making, "assemble", interrupted)
        one_run.ensure_dataset(dataset, where.data, "cpu")
    (refused,) = fill_missing(jobs, where)
    assert refused.state == "failed" and "were made with spdebench 0.0.9" in refused.message
    (outcome,) = fill_missing(jobs, where, RunSettings(force=True))
    assert outcome.state == "added"
    made = open_dataset(Path(where.data) / dataset.file_name).made  # of one chunk
    assert made["spdebench"] == "0.0.9"


def interrupted(*arguments: object) -> None:
    raise KeyboardInterrupt
