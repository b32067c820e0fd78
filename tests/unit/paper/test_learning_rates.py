"""A learning rate that validation chooses: pilots first, then runs with the rate of the best pilot."""

from __future__ import annotations

import dataclasses
import math
import shutil

import pytest
from tests.tiny_tables import made_up, tiny_table

from spdebench.campaign import one_run, plan, run
from spdebench.campaign.rates import SCORING_SECONDS
from spdebench.campaign.run import fill_missing
from spdebench.campaign.unit import Places, RunOutcome, Unit
from spdebench.paper import base, fill
from spdebench.paper.base import PILOT_EPOCHS, Table
from spdebench.paper.layout import with_reference_rows
from spdebench.records import store

RATES = (1e-4, 1e-3, 1e-2)


@pytest.fixture
def tuned() -> Table:
    table = tiny_table()
    wants = [dataclasses.replace(w, learning_rates=RATES) if w.model == "deeponet" else w for w in table.wants]
    return dataclasses.replace(table, wants=tuple(wants))


def recorded(runs, errors):
    return {run.digest: made_up(run, error) for run, error in zip(runs, errors, strict=True)}


def test_runs_wait_for_pilots_and_take_the_rate_of_the_best(tuned):
    (cell,) = [c for c in tuned.cells(2) if c.model == "deeponet" and c.group.startswith("xi") and c.column == "J=4"]
    assert [run.options["lr"] for run in cell.pilots] == list(RATES)
    assert {(run.options["epochs"], run.options["seed"]) for run in cell.pilots} == {(PILOT_EPOCHS, 0)}
    assert cell.next_runs == cell.pilots
    some = recorded(cell.pilots[:2], (0.3, 0.1))
    again = {(c.group, c.column, c.row): c for c in tuned.cells(2, records=some)}[cell.group, cell.column, cell.row]
    assert again.pilots == cell.pilots[2:] and again.next_runs == again.pilots
    done = some | recorded(cell.pilots[2:], (0.2,))
    last = {(c.group, c.column, c.row): c for c in tuned.cells(2, records=done)}[cell.group, cell.column, cell.row]
    assert not last.pilots and [run.options["lr"] for run in last.next_runs] == [1e-3, 1e-3]
    assert [run.options["seed"] for run in last.runs] == [0, 1] and last.runs[0].options["epochs"] == 3


def test_a_pilot_without_a_validation_error_is_not_chosen(tuned):
    want = next(w for w in tuned.wants if w.model == "deeponet")
    pilots = want.pilots("paper")
    known = {run.digest: made_up(run, 0.1, val=None if rate == 1e-4 else rate) for rate, run in pilots.items()}
    assert want.tuned("paper", known)[0].options["learning_rate"] == 1e-3
    assert math.isinf(base._validation(known[pilots[1e-4].digest]))


def test_a_cell_whose_rate_is_not_chosen_has_no_number(tuned):
    """Not even if a run with the rate of the want is recorded."""
    cells = [c for c in tuned.cells(1) if c.model == "deeponet" and c.part == "test"]
    known = {run.digest: made_up(run, 0.1) for c in cells for run in c.runs}
    shown = [e for e in fill(tuned, known, 1).entries if e.cell.model == "deeponet" and e.cell.part == "test"]
    assert shown and all(e.mean is None and e.missing for e in shown)


def test_a_plan_counts_the_runs_that_wait_for_pilots(tuned, tmp_path):
    cells = tuned.cells(2)
    todo, later = plan.jobs(cells, {}), [each.job for each in plan.waiting(cells, {})]
    total = plan.overview(cells, todo, tmp_path, later)["total"]
    assert {j.spec.model for j in later} == {"deeponet"} and {j.spec.options["epochs"] for j in later} == {3}
    assert total["waiting"] == len(later) == 4 and total["runs"] == len(todo) + 4  # two truncations, two seeds
    assert total["seconds"] == sum(j.seconds for j in (*todo, *later))
    assert not plan.waiting(tiny_table().cells(2), {})


def test_pilots_cost_what_comes_after_them_too(tuned):
    """Their numbers are there when all pilots and the run have been made; without a budget a group comes as a whole."""
    cells = tuned.cells(1)
    pilots = [job for job in plan.jobs(cells, {}) if job.pilot]
    cell = next(c for c in cells if c.pilots)
    (three,) = {job.seconds_with_run for job in pilots if job.spec in cell.pilots}
    (run,) = {w.job.seconds for w in plan.waiting(cells, {}) if w.job.spec in cell.runs}
    shifts = sum(1 for c in cells if c.shift is not None and c.runs == cell.runs)
    assert three == pytest.approx(
        sum(j.seconds for j in pilots if j.spec in cell.pilots) + run - SCORING_SECONDS * shifts
    )
    groups = list(dict.fromkeys(c.group for c in cells))
    for job in pilots:
        assert job.group == min(groups.index(c.group) for c in cells if job.spec in c.pilots)


@pytest.fixture
def campaign(tuned, tmp_path, monkeypatch):
    """Makes, in a folder of its own, three pilots and the run with the rate that they have chosen."""
    where = Places(*(str(tmp_path / name) for name in ("data", "runs", "results")))
    monkeypatch.setattr(base, "PILOT_EPOCHS", 1)

    def jobs() -> list[plan.Job]:
        known = store.read(where.results)
        cells = [c for c in tuned.cells(1, records=known) if (c.model, c.column, c.part) == ("deeponet", "J=4", "test")]
        return plan.jobs([c for c in cells if c.group.startswith("xi")], known, where.runs)

    def make() -> list[RunOutcome]:
        outcomes = fill_missing(jobs(), where, after_pilots=jobs)
        assert all(job.status == "done" for job in jobs())
        return outcomes

    return make


def test_a_run_joins_the_campaign_when_its_pilots_have_ended(campaign):
    """One command, one pool: three pilots, then the run with the rate that they have chosen."""
    outcomes = campaign()
    assert {o.state for o in outcomes} == {"added"}
    best = min(outcomes[:3], key=lambda o: o.record.val).record.options["lr"]
    assert [o.record.options["epochs"] for o in outcomes] == [1, 1, 1, 3]
    assert outcomes[-1].record.options["lr"] == best


def test_runs_that_another_process_makes_are_waited_for_also_after_their_pilots(campaign, monkeypatch):
    def made_elsewhere(unit: Unit) -> RunOutcome:
        if not unit.wait_for_others:
            return RunOutcome(unit.spec.name, "busy")
        return one_run.make_run(unit)

    monkeypatch.setattr(run, "make_run", made_elsewhere)
    assert [o.record.options["epochs"] for o in campaign()] == [1, 1, 1, 3]


def test_no_run_is_made_twice_when_the_records_of_pilots_are_lost(campaign, tmp_path):
    """Two pilots are collected from their folders; the third has lost its folder too and is made again."""
    outcomes = campaign()
    shutil.rmtree(tmp_path / "results")
    shutil.rmtree(tmp_path / "runs" / outcomes[2].name)
    again = [o.name for o in campaign()]
    assert sorted(again) == sorted(o.name for o in outcomes)


def test_reference_rows_have_no_pilots(tuned):
    """They are not trained, also where the rows that they stand beside choose a learning rate."""
    wants = with_reference_rows([w for w in tuned.wants if w.learning_rates])
    cells = dataclasses.replace(tuned, wants=wants).cells(1)
    assert {c.model for c in cells if c.pilots} == {"deeponet"} and len({c.model for c in cells}) > 2
