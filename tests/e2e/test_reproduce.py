"""``spdebench reproduce`` as a user meets it: recorded runs are made again and compared."""

from __future__ import annotations

import dataclasses
import json

import pytest

import command_line
from replace_records import replace_records
from spdebench.campaign import one_run
from spdebench.errors import UserError
from spdebench.models import MODELS
from spdebench.paper import catalogue
from spdebench.records import store
from spdebench.records.record import MetricValue
from tiny_tables import tiny_table


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder in which the tiny table has been run."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(catalogue, "table", lambda name: tiny_table())
        words = ("--run", "--seeds", "1", "--only", "mean,deeponet", "--results", "mine")
        assert command_line.call("table", "tiny", *words) == 0
    return folder


@pytest.fixture
def here(made, monkeypatch):
    monkeypatch.chdir(made)
    monkeypatch.setattr(catalogue, "table", lambda name: tiny_table())
    return made


def reproduce(*words: str) -> int:
    return command_line.call("reproduce", "tiny", "--seeds", "1", "--data", "data", *words)


def test_recorded_runs_give_the_same_scores(here, capsys):
    before = [path.read_bytes() for path in sorted((here / "mine").iterdir())]
    assert reproduce("--results", "mine", "--out", "first", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["runs"]) == len(store.read("mine")) and not found["failed"] and not found["not_compared"]
    assert {row["verdict"] for row in found["runs"]} == {"same"}
    assert [path.read_bytes() for path in sorted((here / "mine").iterdir())] == before
    assert set(store.read("first/results")) == set(store.read("mine"))


def test_a_run_that_fails_is_named_and_is_an_error(here, capsys, monkeypatch):
    def fails(*_: object) -> None:
        raise UserError("it cannot be trained")

    monkeypatch.setattr(one_run, "_train", fails)
    assert reproduce("--results", "mine", "--out", "failing", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    trained = {record.name for record in store.read("mine").values() if record.model in MODELS}
    assert found["failed"] == dict.fromkeys(trained, "it cannot be trained") and trained
    assert found["not_compared"] == len(trained)


def changed(folder: str, factor: float, part: str) -> str:
    """A folder of the same records, in which the relative L2 error of one run is another; the name of that run."""
    records = store.read("mine")
    one = next(r for r in records.values() if r.model == "deeponet" and "fresh" in r.shifts)
    for record in records.values():
        if record is one:
            scored = record.part(part)
            scores = {**scored.scores, "rel_l2": MetricValue(scored.scores["rel_l2"].value * factor)}
            if part == "test":
                record = dataclasses.replace(record, scores=scores)
            else:
                moved = dataclasses.replace(scored, scores=scores)
                record = dataclasses.replace(record, shifts={**record.shifts, part: moved})
        store.add(folder, record)
    return one.name


@pytest.mark.parametrize(
    ("factor", "part", "verdict", "code"),
    [(1.01, "test", "close", 0), (1.1, "test", "different", 1), (0.5, "fresh", "different", 1)],
)
def test_another_score_is_found_on_every_part(here, capsys, factor, part, verdict, code):
    folder = f"changed-{factor}"
    name = changed(folder, factor, part)
    assert reproduce("--results", folder, "--out", f"again-{factor}") == code
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    (row,) = (row for row in rows if row[:3] == [name, part, "rel_l2"])
    assert verdict in row
    # the maintainers' script puts the new records in the place of the others; then all is the same
    order = list(store.read(folder))
    old = next(record for record in store.read(folder).values() if record.name == name)
    store.add(folder, dataclasses.replace(old, shifts={"elsewhere": old.shifts["fresh"]}))  # for another table
    assert replace_records(f"again-{factor}/results", folder) == {name: ["elsewhere"]}
    assert list(store.read(folder)) == order
    assert reproduce("--results", folder, "--out", f"again-{factor}") == 0


def test_mistakes_are_one_line(here, capsys):
    assert reproduce("--results", "mine", "--only", "linear") == 2
    assert "no run of tiny has a record" in capsys.readouterr().err
    assert reproduce("--results", "mine", "--edition", "convergd") == 2
    assert "did you mean 'converged'" in capsys.readouterr().err
    assert reproduce("--results", "mine", "--jobs", "0") == 2
    assert not (here / "reproduced").exists()
