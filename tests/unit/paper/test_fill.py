"""Filling: means, spreads, ratios, the best and whether it is; from records alone."""

from __future__ import annotations

import dataclasses
import math
import statistics

import numpy as np
import pytest

from spdebench.paper.base import Table
from spdebench.paper.catalogue import TABLES
from spdebench.paper.fill import fill, narrowed
from spdebench.paper.layout import FINE_REFERENCE, NOTES, want, with_reference_rows
from spdebench.records.record import FLOOR
from spdebench.report.tables import render
from tiny_tables import FIXED, made_up


def two_models(**fields) -> Table:
    """DeepONet and GT on one dataset, as if the paper had both."""
    wants = tuple(
        want(m, FIXED, "xi", group="g", column="c", options={"epochs": 2}, published=None, **fields)
        for m in ("deeponet", "gt")
    )
    return Table(name="two", title="Two", source="none", wants=wants)


def filled(table: Table, errors: dict[str, list[float]], seeds: int = 3, **changes):
    records = {}
    for cell in table.cells(seeds):
        for run, error in zip(cell.runs, errors.get(cell.model, []), strict=False):
            records[run.digest] = made_up(run, error, **changes)
    return fill(table, records, seeds)


def test_mean_spread_and_number_of_seeds():
    found = filled(two_models(), {"deeponet": [0.1, 0.2, 0.3], "gt": [0.5]})
    first, second = found.entries
    assert first.mean == pytest.approx(0.2) and first.std == pytest.approx(0.1) and first.seeds_done == 3
    assert (second.mean, second.std, second.seeds_done, second.missing) == (0.5, None, 1, 2)
    assert found.missing() == {"spdebench table two --run --only gt": [second]}
    assert first.samples is not None and first.samples.shape == (40,)
    assert (found.rows, found.columns, found.done) == (["DeepONet", "GT"], ["c"], 2)


def test_nothing_there_is_no_error():
    found = filled(two_models(), {})
    assert [e.mean for e in found.entries] == [None, None]
    assert not found.best and not found.significance and found.done == 0


@pytest.mark.parametrize(("gap", "certain"), [(0.5, True), (1e-4, False)])
def test_the_best_is_told_from_the_next_where_samples_can(gap, certain):
    found = filled(two_models(), {"deeponet": [0.2 * (1 + gap)] * 3, "gt": [0.2] * 3}, spread=0.2)
    assert found.best == {("g", "c"): ("GT",)}
    p, runner_up = found.significance["g", "c"]
    assert runner_up == "DeepONet" and (p < 0.01) is certain


def test_a_broken_run_is_neither_best_nor_missing():
    found = filled(two_models(), {"deeponet": [math.nan], "gt": [0.5]}, seeds=1)
    assert found.best["g", "c"] == ("GT",) and not found.missing() and not found.significance


def test_a_ratio_is_best_near_one():
    table = two_models(metric="std_ratio")
    records = {}
    for cell, value in zip(table.cells(1), (0.4, 1.05), strict=True):
        (run,) = cell.runs
        records[run.digest] = made_up(run, 0.1, scores={"std_ratio": {"value": value}})
    assert fill(table, records, 1).best["g", "c"] == ("GT",)


@pytest.mark.parametrize(
    ("floor", "best", "marked"), [(0.1, ("GT", "DeepONet"), 2), (0.09, ("GT",), 1), (0.01, ("GT",), 0)]
)
def test_models_at_the_floor_are_equal(floor, best, marked):
    """Errors 0.105 and 0.115; the floor, the nonlinearity and the identifiability stand below the columns."""
    table = dataclasses.replace(two_models(), wants=with_reference_rows(two_models().wants))
    errors = {"deeponet": 0.115, "gt": 0.105, "step": 0.2, "solver": 0.3, "linear": 0.4}
    records = {}
    for cell in table.cells(1):
        scored = {"scores": {"rel_l2": {"value": floor}}, "samples": {"rel_l2": []}}
        shifts = {"floor": scored} if cell.model == "solver" else {}
        records |= {run.digest: made_up(run, errors.get(cell.model, 0.9), shifts=shifts) for run in cell.runs}
    found = fill(table, records, 1)
    (group,) = found.groups
    assert found.best == {("g", "c"): best}
    assert len(found.significance) == (len(best) == 1)
    assert sum(group.at_floor(e) for e in group.column("c")) == marked
    numbers = group.numbers("c")
    assert (numbers.floor, numbers.identifiability) == (floor, 0.2)
    assert "floor" not in group.rows and group.entries["floor", "c"].inference_ms is None
    texts = [render(found, each) for each in ("text", "md", "latex", "html")]
    assert all(f"{floor:.3g}" in t and "identifiability" in t and "nonlinearity" in t for t in texts)
    assert texts[0].count("*0.1") == len(best)
    shown = narrowed(found, lambda cell: cell.model == "gt")  # as with --only gt
    assert shown.rows == ["GT"] and shown.groups[0].numbers("c") == numbers and NOTES[FLOOR] in shown.notes


def test_the_floor_of_complete_data_is_the_solvers_own_error():
    table = dataclasses.replace(two_models(), wants=with_reference_rows(two_models().wants))
    records = {run.digest: made_up(run, 1e-8) for cell in table.cells(1) for run in cell.runs}
    assert fill(table, records, 1).groups[0].numbers("c").floor == 1e-8


def test_solver_and_marks_do_not_compete(tiny):
    records = {}
    for cell in tiny.cells(1):
        for run in cell.runs:
            error = 1e-8 if cell.model == "solver" else 0.1
            finer = {"scores": {"rel_l2": {"value": 0.02}}, "samples": {"rel_l2": []}}
            records[run.digest] = made_up(run, error, shifts={"finer": finer})
    found = fill(tiny, records, 1)
    group = found.groups[0]
    assert group.entries["solver", "J=4"].mean == 1e-8 and group.entries[FINE_REFERENCE, "J=4"].mean == 0.02
    assert not set(found.best["xi -> u", "J=4"]) & {"solver", FINE_REFERENCE}
    assert group.inference_ms("solver") == 0.5 and group.inference_ms(FINE_REFERENCE) is None
    assert group.parameters("DeepONet") == 1234
    # the shifts were not scored: their cells are missing, the run is not
    assert {e.cell.column for entries in found.missing().values() for e in entries} == {"J=8", "fresh"}


def test_rows_that_were_timed_on_another_device_are_named():
    """Times on a processor and on a GPU cannot be compared."""
    runs = [cell.runs[0] for cell in two_models().cells(1)]
    devices = ["cuda: X", *["cpu: Y"] * (len(runs) - 1)]
    records = {
        run.digest: made_up(run, 0.1, inference_ms=0.5, provenance={"device": device})
        for run, device in zip(runs, devices, strict=True)
    }
    found = fill(two_models(), records, 1)
    odd = next(e.cell.row for e in found.entries if e.records[0].provenance.device == "cuda: X")
    assert found.times_text == f"batch 100 on cpu: Y; {odd} on cuda: X"
    assert f"at batch 100 on cpu: Y; {odd} on cuda: X." in render(found, "text")


def test_seeds_are_averaged_before_models_are_paired():
    """Samples of an entry are means over its seeds."""
    table = two_models()
    records = {}
    for cell in table.cells(2):
        for k, run in enumerate(cell.runs):
            records[run.digest] = made_up(run, 0.1, samples={"rel_l2": [float(k), 2.0, 3.0]})
    assert np.allclose(fill(table, records, 2).entries[0].samples, [0.5, 2, 3])


def test_the_other_edition_is_other_runs():
    table = two_models()
    paper = {r.digest for c in table.cells(1) for r in c.runs}
    converged = {r.digest for c in table.cells(1, "converged") for r in c.runs}
    assert not paper & converged
    (command,) = {e.command for e in fill(table, {}, 2, "converged").entries if e.cell.model == "gt"}
    assert command == "spdebench table two --run --only gt --seeds 2 --edition converged"


def test_notes_state_the_split_and_the_seed_that_the_runs_have():
    """The tables core, observation and observation-seed1 have another split, the last another seed, and no published
    number."""
    for each in TABLES:
        found = fill(each, {}, 1)
        first = [run for e in found.entries for run in e.cell.runs[:1]]
        if not first:
            continue
        notes = " ".join(found.notes)
        rule, seed = statistics.mode((run.task["split"], run.datasets[0]["seed"]) for run in first)
        words = "in blocks of 20" if rule == "blocks" else f"split {rule} by one permutation"
        assert f"samples of seed {seed}" in notes and words in notes, each.name
        assert sum(note.startswith("Data:") for note in found.notes) == 1, each.name
        printed = any(e.cell.published_keys for e in found.entries)
        assert ("the paper's s.d." in notes) == printed and "Ours: mean ± s.d. over training seeds" in notes, each.name
