"""The suite of datasets: the counts of Table 1, and every configuration builds a spec of its own."""

from __future__ import annotations

import pytest

from spdebench.data.identity import DatasetSpec
from spdebench.equations import EQUATIONS
from spdebench.errors import UserError
from spdebench.suites import PAPER
from spdebench.suites.paper import ROWS

COUNTS = {"Phi41-S": 32, "Phi41-L": 32, "KdV": 20, "Wave": 16, "NSE": 8, "Phi42": 10, "Phi43": 1, "KPZ": 32}


def test_counts_are_those_of_table_1():
    counted = [row for row in ROWS if row.counted]
    assert {row.name: len(row.problems()) for row in counted} == COUNTS
    assert {row.name: row.n for row in ROWS if row.n != 1200} == {"Phi41-L": 12000}
    assert sum(p.n for row in counted for p in row.problems()) == 1200 * (151 - 32) + 12000 * 32


def test_kdv_has_16_sets_on_128_points_and_4_on_256():
    points = [c.build().points for c in PAPER.choose("KdV")]
    assert (points.count(128), points.count(256)) == (16, 4)


@pytest.mark.parametrize("row", [row.name for row in ROWS])
def test_every_configuration_builds_a_dataset_of_its_own(row):
    rows = PAPER.choose(row)
    if rows[0].equation not in list(EQUATIONS):
        pytest.skip(f"{rows[0].equation} is not declared")
    specs = [DatasetSpec(equation=c.build(), n=c.n) for c in rows]
    assert len({s.digest for s in specs}) == len(rows)
    for c, spec in zip(rows, specs, strict=True):
        assert all(getattr(spec.equation, key) == value for key, value in c.fields.items())
        assert spec.equation.edition == "paper"


def test_a_row_that_does_not_exist_is_named():
    with pytest.raises(UserError, match="did you mean 'Phi42'"):
        PAPER.choose("Phi422")
