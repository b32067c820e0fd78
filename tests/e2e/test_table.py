"""``spdebench table`` as a user meets it: shown, planned, run, and every mistake one line."""

from __future__ import annotations

import csv
import io
import json

import pytest
import torch

import command_line
from spdebench.paper import catalogue
from spdebench.paper.catalogue import TABLES
from tiny_tables import tiny_table


def call(*words: str) -> int:
    return command_line.call("table", *words)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, and a catalogue in which every name is the tiny table."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(catalogue, "table", lambda name: tiny_table())
    return tmp_path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["phi41-perodic"], "unknown table 'phi41-perodic'; did you mean 'phi41-periodic'?"),
        (["wave-dirichlet", "--plan", "--run"], "cannot be combined"),
        (["wave-dirichlet", "--budget", "5m"], "--budget limits the runs of --run"),
        (["wave-dirichlet", "--plan", "--engine", "rai"], "unknown engine 'rai'; did you mean 'ray'?"),
        (["wave-dirichlet", "--engine", "ray"], "--engine and --per-gpu say how --run makes runs"),
        (["wave-dirichlet", "--run", "--per-gpu", "2"], "with --device cuda; got 2 on cpu"),
        (["wave-dirichlet", "--format", "pdf"], "unknown format 'pdf'"),
        (["wave-dirichlet", "--edition", "convergd"], "did you mean 'converged'"),
    ],
)
def test_mistakes_are_one_line(words, message, capsys):
    assert call(*words) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tiny", "--seeds", "0"], "seeds must be at least 1"),
        (["tiny", "--run", "--budget", "soon"], "a budget is a time such as 25m"),
        (["tiny", "--plan", "--only", "nobody"], "no row matches 'nobody'"),
        (["tiny", "--only", "nobody"], "no row matches 'nobody'"),
        (["tiny", "--results", "nowhere"], "no such folder of run records: nowhere"),
        (["tiny", "--run", "--device", "tpu9"], "unknown device"),
        (["tiny", "--plan", "--device", "tpu"], "unknown device"),
        (["tiny", "--run", "--jobs", "0"], "--jobs must be at least 1"),
        (["tiny", "--run", "--results", "file/results"], "choose another with --results"),
        (["tiny", "--run", "--runs", "file/runs"], "choose another folder with --runs"),
        (["tiny", "--run", "--portable", "file/portable"], "choose another folder with --portable"),
        (["tiny", "--run", "--device", "cuda"], "no usable CUDA device on this machine; use --device cpu"),
        (["tiny", "--run", "--budget", "0.001s"], "too small for even one run"),
    ],
)
def test_mistakes_with_a_table(here, words, message, capsys, monkeypatch):
    """The error is all that is printed, and nothing is written."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    (here / "file").write_text("")
    assert call(*words) == 2
    out, err = capsys.readouterr()
    assert message in err and err.count("\n") == 1 and not out
    assert [path.name for path in here.iterdir()] == ["file"]


def test_the_list(capsys):
    assert call("list", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [t["name"] for t in found] == [t.name for t in TABLES]
    assert {t["kind"] for t in found} == {"table", "figure"}


def test_planned_run_shown(here, capsys):
    """The whole way of a user, on a small table."""
    only = ["--seeds", "1"]
    assert call("tiny", *only, "--plan") == 0
    out = capsys.readouterr().out
    assert "datasets must be generated first" in out and "--run instead of --plan" in out
    assert not list(here.iterdir())  # planning makes nothing
    assert call("tiny", *only) == 0
    shown = capsys.readouterr().out
    assert "spdebench table tiny --run --only deeponet --seeds 1" in shown
    assert call("tiny", *only, "--run", "--only", "mean,solver") == 0
    out = capsys.readouterr().out
    assert "4 to make" in out and "4 added" in out and "mean-phi41-" in out
    assert call("tiny", *only, "--run") == 0
    out = capsys.readouterr().out
    assert "4 runs are done" in out and "Missing" not in out and "*0." in out
    assert call("tiny", *only, "--run") == 0
    assert "0 to make" in capsys.readouterr().out
    assert call("tiny", *only, "--format", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 22 and all(r["mean"] for r in rows)
    assert call("tiny", *only, "--only", "mean,solver", "--format", "csv") == 0
    some = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert some == [r for r in rows if r["model"] in ("mean", "solver")] and len(some) < len(rows)
    assert call("tiny", *only, "--plan", "--device", "cuda:99", "--json") == 0  # one plans for other machines
    assert json.loads(capsys.readouterr().out)["total"]["runs"]
    assert call("tiny", *only, "--plan", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["total"]["done"] == facts["total"]["runs"] and facts["published"] == []


def test_all_published_numbers_are_planned(capsys):
    assert call("all", "--plan", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert [p["line"] for p in facts["published"]] == list(range(2, 596))
    assert all(p["digests"] and p["status"] in ("done", "begun", "missing") for p in facts["published"])
    planned = {r["digest"] for r in facts["runs"]}
    assert {d for p in facts["published"] for d in p["digests"]} <= planned


def test_a_record_that_is_none_is_one_line(here, capsys):
    (here / "results").mkdir()
    (here / "results" / "phi41.jsonl").write_text("not json\n")
    assert call("tiny") == 2
    assert "phi41.jsonl, line 1, is not a run record" in capsys.readouterr().err
