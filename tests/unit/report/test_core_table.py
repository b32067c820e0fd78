"""The core leaderboard in README and docs/core.md: what the records give; gaps are counted and named."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch

from spdebench.errors import UserError
from spdebench.paper.catalogue import table
from spdebench.records import store
from spdebench.report import headline
from spdebench.report.core_table import core_table, shift_tables
from spdebench.solvers import simulate
from spdebench.suites import CORE
from spdebench.training.solver_row import SOLVER
from tiny_tables import made_up

ROOT = Path(__file__).parents[3]
SHIFTS = ("sigma x2", "u0 x2", "J x2")
SHIFT = {"scores": {"rel_l2": {"value": 0.5}}}


@pytest.fixture(scope="module")
def complete():
    """Records of every model on phi41: pilots, of which the second learning rate is best, and then one run each."""
    wants = [w for w in table("core").wants if w.group == "phi41" and w.part == "test" and w.model != SOLVER]
    pilots = [list(want.pilots("converged").values()) for want in wants]
    known = {
        run.digest: made_up(run, error)
        for runs in pilots
        for run, error in zip(runs, (0.3, 0.1, 0.2)[: len(runs)], strict=True)
    }
    cells = [c for c in table("core").cells(1, records=known) if c.group == "phi41" and c.part == "test"]
    runs = {c.row: c.runs[0] for c in cells if c.model != SOLVER}
    errors = {row: 0.9 - 0.01 * k for k, row in enumerate(runs)}
    return known | {run.digest: made_up(run, errors[row], shifts={"J x2": SHIFT}) for row, run in runs.items()}


def test_rows_stand_in_the_order_of_their_error_and_the_best_of_a_full_column_is_bold(complete):
    lines = core_table(complete).splitlines()
    assert lines[0] == "| model | `phi41` |"
    assert lines[2:4] == ["| WNO | **0.800** |", "| GT | 0.810 |"] and lines[12] == "| mean | 0.900 |"
    assert "1 training seed." in core_table(complete)


def test_rows_without_a_finite_error_come_last(complete):
    bad = _run_of(complete, "gt")
    known = complete | {bad: dataclasses.replace(complete[bad], scores={})}  # its prediction was not finite
    rows = [line.split(" | ")[0][2:] for line in core_table(known).splitlines()[2:13]]
    whole = [line.split(" | ")[0][2:] for line in core_table(complete).splitlines()[2:13]]
    assert rows == [*(row for row in whole if row != "GT"), "GT"]


def test_missing_cells_are_counted_and_named(complete):
    text = " ".join(core_table(complete).split())
    cells = [c for c in table("core").cells(1) if c.part == "test" and c.model != SOLVER]
    gaps = sum(c.group != "phi41" for c in cells)
    assert f"{gaps} of {len(cells)} cells have not been run yet: `kpz` all" in text
    assert text.endswith("spdebench table core --run --device cuda --seeds 1")
    less = {digest: record for digest, record in complete.items() if digest != _run_of(complete, "wno")}
    text = " ".join(core_table(less).split())
    assert "| WNO | - |" in text and "**" not in text and "`phi41` 1 of 11, `kpz` all" in text
    assert shift_tables(less) == "" and "no run yet" in core_table({})


def _run_of(known, model):
    """Digest of the run (not a pilot) of a model."""
    return next(d for d, r in known.items() if r.model == model and r.options["epochs"] == 300)


def test_shifts_are_shown_for_a_complete_problem(complete):
    lines = shift_tables(complete).splitlines()
    assert lines[0] == "`phi41`, all models:"
    assert lines[2] == "| model | parameters | test | sigma x2 | u0 x2 | J x2 | grid x2 | horizon x2 |"
    assert lines[4] == "| WNO | 1.23k | **0.800** | - | - | 0.500 |  |  |"  # WNO has its own grid and horizon


def test_no_model_is_the_best_where_the_inputs_do_not_show_the_shift(complete):
    """Sigma is not part of the inputs: u0 and dw of the shifted data are those of the problem."""
    known = {
        d: dataclasses.replace(r, shifts=dict.fromkeys(SHIFTS, r.shifts["J x2"])) if r.shifts else r
        for d, r in complete.items()
    }
    best = next(line for line in shift_tables(known).splitlines() if line.startswith("| mean |"))
    assert best == "| mean | 1.23k | 0.900 | 0.500 | **0.500** | **0.500** |  |  |"
    assert {w.column for w in table("core").wants if not w.ranked} == {"sigma x2"}
    problem = CORE.problems[0]
    own, other = (
        simulate(each.equation, each.seed, range(2)) for each in (problem.spec, problem.datasets()["sigma x2"])
    )
    assert torch.equal(own.u0, other.u0) and torch.equal(own.dw, other.dw) and not torch.equal(own.u, other.u)


def test_the_committed_page_is_what_the_records_give():
    known = store.read(ROOT / "results")
    text = (ROOT / headline.CORE_PAGE).read_text(encoding="utf-8")
    again = "out of date: type 'spdebench results --out docs/results.md --readme README.md'"
    assert headline.core_page(text, known) == text, again


def test_a_page_without_marks_is_refused_before_anything_is_written(tmp_path):
    marks = [*headline.FIRST, headline.OPEN, headline.CLOSE, *headline.equation_marks, *headline.core_marks]
    readme, page = tmp_path / "README.md", tmp_path / headline.CORE_PAGE
    page.parent.mkdir()
    readme.write_text("\n".join(marks) + "\n")
    page.write_text("no marks\n")
    with pytest.raises(UserError, match="must hold the lines <!-- core -->"):
        headline.write_pages({}, readme)
    assert readme.read_text() == "\n".join(marks) + "\n" and list(page.parent.iterdir()) == [page]
