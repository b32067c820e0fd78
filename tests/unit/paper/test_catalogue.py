"""Tables from outside, and rows of models that are declared outside the package."""

from __future__ import annotations

import dataclasses

import pytest

from spdebench.errors import UserError
from spdebench.models import MODELS
from spdebench.models.baselines import Mean
from spdebench.models.fno import FNO
from spdebench.paper import TABLES, Table, data, fill, register_table, table, want, with_reference_rows
from spdebench.paper.base import third_party_models
from spdebench.paper.published import title
from tiny_tables import FIXED, made_up


@pytest.fixture
def outside(monkeypatch):
    """A model from elsewhere: FNO under another name, without a title of its own."""
    monkeypatch.setattr(MODELS, "_items", dict(MODELS._items) if list(MODELS) else {})
    kind = type("Elsewhere", (FNO,), {"__module__": "elsewhere"}, name="elsewhere")
    assert MODELS["elsewhere"] is kind
    return "elsewhere"


def small() -> Table:
    wants = [want(m, FIXED, "xi", group="g", column="c", published=None) for m in ("deeponet", "gt")]
    return Table(name="small", title="Small", source="none", wants=with_reference_rows(wants))


def test_a_registered_table_is_found_and_declared_once(monkeypatch):
    before = [t.name for t in TABLES]
    monkeypatch.setattr(TABLES, "_items", dict(TABLES._items))
    mine = register_table(small())
    assert table("small") is mine and [t.name for t in TABLES] == [*before, "small"]
    assert register_table(small()) == mine  # the same again, as in a worker
    with pytest.raises(UserError, match="table 'small' is declared twice"):
        register_table(dataclasses.replace(mine, title="Another"))
    with pytest.raises(UserError, match="unknown table 'smal'; did you mean 'small'"):
        table("smal")


def test_titles_come_from_the_models(outside):
    assert (title("fno"), title("mean"), title("solver"), title(outside)) == ("FNO", "mean", "solver", "elsewhere")
    assert third_party_models() == [outside] and Mean.title == "mean"


def test_a_model_from_outside_gets_a_row_when_asked(outside):
    rows = [w.row for w in small().with_models([outside]).wants]
    regressions = ["linear", "trees"]
    given = [f"{name}, generator's kernel" for name in regressions]
    reference = ["mean", *regressions, "step", *given, "solver", "floor", "solver vs fine reference"]
    assert rows == ["DeepONet", "GT", "elsewhere", *reference]
    assert small().with_models(["gt"]) == small()
    other = want("nspde", data("phi42", points=8, truncation=4, n=20), "xi", group="g", column="c", published=None)
    narrow = dataclasses.replace(small(), wants=(other,)).with_models(["gt", "ncde"])  # ncde works in 1-D only
    assert [c.row for c in narrow.cells(1)] == ["NSPDE", "GT"]


def test_a_row_from_outside_has_the_training_options_of_its_number(outside):
    table = dataclasses.replace(
        small(), wants=tuple(dataclasses.replace(w, options={"epochs": 3}) for w in small().wants)
    )
    rows = [w for w in table.with_models([outside]).wants if w.model == outside]
    assert rows and all(w.options == {"epochs": 3} and w.config == {} for w in rows)


def test_a_metric_that_does_not_exist_is_refused():
    first = table("phi41-periodic")
    wrong = dataclasses.replace(first, wants=(dataclasses.replace(first.wants[0], metric="rel_l22"),))
    with pytest.raises(UserError, match=r"phi41-periodic.*'rel_l22'.*rel_l2"):
        wrong.cells()


def test_a_model_from_outside_has_a_row_once_it_has_records(outside):
    assert outside not in fill(small(), {}, 1).rows
    cells = small().with_models([outside]).cells(1)
    (cell,) = (c for c in cells if c.model == outside)
    found = fill(small(), {cell.runs[0].digest: made_up(cell.runs[0], 0.1)}, 1)
    assert found.rows[:3] == ["DeepONet", "GT", "elsewhere"] and found.best["g", "c"] == ("elsewhere",)
