"""Committed records keep their cells: no change of a default may move a row or leave a record without a table."""

from __future__ import annotations

from pathlib import Path

from spdebench.equations import EQUATIONS
from spdebench.paper import TABLES
from spdebench.paper.base import Table
from spdebench.records import store
from spdebench.records.record import TEST
from spdebench.training.identity import RunSpec
from spdebench.training.solver_row import outdated

RESULTS = Path(__file__).parents[2] / "results"
RECORDS, NUMBERS, FILLED = 625, 594, 261
"""Records and published numbers with a run when the defaults of split, kernel, spectrum and renormalisation changed."""


def test_every_committed_record_belongs_to_a_cell() -> None:
    records = store.read(RESULTS)
    cells = [cell for each in TABLES for cell in each.cells(records=records)]
    planned = {run.digest for cell in cells for run in cell.runs}
    planned |= {run.digest for each in TABLES for run in _pilots(each)}
    lost = [records[digest] for digest in records.keys() - planned]
    assert len(records) >= RECORDS
    assert all(outdated(record) for record in lost)  # a solver that was given more noise than a model
    lines = {line: cell for cell in cells for line in cell.published_keys}
    known = {line: [records[r.digest] for r in cell.runs if r.digest in records] for line, cell in lines.items()}
    values = {line: [r.value(lines[line].metric, lines[line].part) for r in found] for line, found in known.items()}
    filled = [line for line, found in values.items() if any(value is not None for value in found)]
    assert len(lines) == NUMBERS and len(filled) >= FILLED


def _pilots(table: Table) -> list[RunSpec]:
    """Short runs that choose a learning rate."""
    edition = table.edition or "paper"
    return [run for want in table.wants if want.supported(edition) for run in want.pilots(edition).values()]


def test_tables_name_what_has_another_default_than_their_records() -> None:
    """Split, kernel, spectrum and renormalisation stand in the declarations, whatever the defaults are."""
    for table in TABLES:
        for want in table.wants:
            assert "split" in want.task, (table.name, want.row)
            for data in want.data:
                fields = EQUATIONS[data.equation].__dataclass_fields__
                named = dict(data.fields).keys()
                assert {"spectrum", "renormalisation"} & fields.keys() <= named, (table.name, want.row)
            if want.model in ("linear", "trees", "dlr-net", "nors") and want.part == TEST:
                assert want.config["kernel"] == ("exact" if want.ranked else "generator")
                assert want.ranked != want.row.endswith(", generator's kernel")
