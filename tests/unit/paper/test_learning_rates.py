"""A learning rate that validation chooses: pilots first, then runs with the rate of the best pilot."""

from __future__ import annotations

import dataclasses
import math

import pytest
from tests.tiny_tables import made_up, tiny_table

from spdebench.campaign import plan
from spdebench.campaign.phases import phases
from spdebench.paper import base, fill
from spdebench.paper.base import PILOT_EPOCHS, Table

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


def test_phases_make_the_pilots_of_a_group_and_then_its_runs(tuned):
    """Each list is computed from the records that the one before has left; shifts wait for the final run."""
    known: dict = {}
    seen = []
    for todo in phases(lambda: tuned.cells(1, records=known), lambda cells: plan.jobs(cells, known)):
        left = [job for job in todo if job.status != "done"]
        seen.append([(j.spec.options["epochs"], j.spec.options["lr"]) for j in left if j.spec.model == "deeponet"])
        assert not any(job.shifts for job in left if job.trained and job.spec.options["epochs"] == PILOT_EPOCHS)
        for job in left:
            known[job.spec.digest] = made_up(job.spec, getattr(job.spec, "options", {}).get("lr", 0.1))
    pilots = [(PILOT_EPOCHS, rate) for rate in RATES]
    assert seen[0] == [*pilots, *pilots] and seen[1] == [(3, 1e-4)] * 2  # two truncations
    assert sum(map(len, seen[:2])) == 8 and not any(rate != 1e-4 for each in seen[2:] for _, rate in each)


def test_a_plan_counts_the_runs_that_wait_for_pilots(tuned, tmp_path):
    cells = tuned.cells(2)
    todo, later = plan.jobs(cells, {}), plan.waiting(cells, {})
    total = plan.overview(cells, todo, tmp_path, later)["total"]
    assert {j.spec.model for j in later} == {"deeponet"} and {j.spec.options["epochs"] for j in later} == {3}
    assert total["waiting"] == len(later) == 4 and total["runs"] == len(todo) + 4  # two truncations, two seeds
    assert total["seconds"] == sum(j.seconds for j in (*todo, *later))
    assert not plan.waiting(tiny_table().cells(2), {})


def test_a_group_keeps_its_place_when_its_pilots_are_done(tuned):
    known = {run.digest: made_up(run, 0.1) for c in tuned.cells(1) if "J=4" in c.label for run in c.pilots}
    groups = list(dict.fromkeys(c.group for c in tuned.cells(1)))
    table = dataclasses.replace(tuned, wants=tuple(w for w in tuned.wants if w.model == "deeponet"))
    first = next(phases(lambda: table.cells(1, records=known), lambda cells: plan.jobs(cells, known)))
    wanted = {run.digest for c in table.cells(1, records=known) if c.group == groups[0] for run in c.next_runs}
    assert {job.spec.digest for job in first} == wanted
