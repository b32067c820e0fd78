"""``spdebench suite``: listing, making, verifying, and mistakes that are one line."""

from __future__ import annotations

import dataclasses
import json

import pytest
from tests.command_line import call

from spdebench.suites import CORE, SUITES, Suite


@pytest.fixture
def small(monkeypatch) -> Suite:
    """A suite of one problem of the core suite, with a few samples."""
    problem = CORE.choose("phi41")[0]
    shifts = tuple(dataclasses.replace(shift, n=20) for shift in problem.shifts[:1])
    suite = dataclasses.replace(CORE, name="small", problems=(dataclasses.replace(problem, n=20, shifts=shifts),))
    SUITES.values()
    monkeypatch.setattr(SUITES, "_items", {**SUITES._items, "small": suite})
    return suite


def test_suites_and_problems_are_listed(capsys):
    assert call("suite", "--json") == 0
    assert [row["suite"] for row in json.loads(capsys.readouterr().out)] == ["core", "paper"]
    assert call("suite", "core") == 0
    out = capsys.readouterr().out
    assert all(p.name in out for p in CORE.problems) and "nonlinearity" in out and "suite core --generate" in out
    assert "measured on 200 samples of each problem" in out


def test_a_suite_is_made_once_and_verified(small, tmp_path, capsys):
    assert call("suite", "small", "--generate", "--out", tmp_path) == 0
    out = capsys.readouterr().out
    assert out.count(".parquet") == 2 and "already exists" not in out
    files = {path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert {"phi41.md", "phi41.png", "phi41.split.json"} <= set(files)
    split = json.loads((tmp_path / "small" / "phi41.split.json").read_text())
    assert [len(split[part]) for part in ("train", "val", "test")] == [14, 3, 3]
    assert "of its variance" in (tmp_path / "small" / "phi41.md").read_text()
    assert call("suite", "small", "--generate", "--out", tmp_path) == 0
    assert capsys.readouterr().out.count("already exists") == 2
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == files
    assert call("suite", "small", "--verify", tmp_path) == 0
    assert "2 of 2 datasets are good" in capsys.readouterr().out
    (tmp_path / small.problems[0].spec.file_name).unlink()
    assert call("suite", "small", "--verify", tmp_path) == 1
    assert "1 of 2 datasets are good" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("cor",), "unknown suite 'cor'; did you mean 'core'?"),
        (("core", "--only", "ph41"), "unknown problem of the suite core 'ph41'; did you mean 'phi41'"),
        (("--generate",), "name a suite, such as core"),
        (("core", "--generate", "--verify", "data"), "--generate and --verify cannot be combined"),
        (("core", "--generate", "--device", "gpu"), "unknown device 'gpu'; use cpu or cuda"),
    ],
)
def test_mistakes_are_one_line(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call("suite", *words) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and message in err and err.count("\n") == 1
    assert not list(tmp_path.iterdir())
