"""``spdebench compare``: scores side by side, paired tests and a figure; runs on other samples are refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import spdebench as sb
from command_line import call
from spdebench.records import store
from spdebench.training.compare_runs import compare_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    phi = sb.equation("phi41", points=16, truncation=8, frames=10, steps=10, sigma=1.0)
    path = sb.generate(phi, n=60, seed=0, out=folder / "data", quiet=True)
    found = {name: sb.train(name, sb.Task(path), out=folder / "runs", progress=False) for name in ("mean", "linear")}
    other = sb.train("mean", sb.Task(path, seed=1), out=folder / "runs", progress=False)
    return {name: str(run.path) for name, run in {**found, "other": other}.items()}


def within(score):
    return score.interval.low <= score.value <= score.interval.high


def test_text_figure_and_json(runs, tmp_path, capsys):
    assert call("compare", runs["mean"], runs["linear"], "--figure", tmp_path / "c.svg") == 0
    out = capsys.readouterr().out
    assert "2 runs on 9 test samples of phi41-xi-periodic" in out and "paired tests on rel_l2" in out
    rows = {line.split()[0]: line for line in out.splitlines() if " [" in line}
    outside = [
        name for name, score in sb.open_run(runs["linear"]).scores.scores.items() if name in rows and score.interval
    ]
    outside = [name for name in outside if not within(sb.open_run(runs["linear"]).scores[name])]
    assert outside and f"linear: {', '.join(outside)}: the interval is corrected for a bias" in out
    assert (tmp_path / "c.svg").read_text().lstrip().startswith("<?xml")
    assert call("compare", runs["mean"], runs["linear"], "--metric", "w12", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    (test,) = found["tests"]
    values = [found["runs"][name]["scores"]["w12"]["value"] for name in ("mean", "linear")]
    assert test["difference"] == pytest.approx(values[0] - values[1]) and test["better"] == "linear"
    assert test["low"] <= test["difference"] <= test["high"]


def test_a_record_can_replace_its_run(runs, tmp_path):
    for name in ("mean", "linear"):
        store.add(tmp_path, sb.open_run(runs[name]).record)
    known = store.read(tmp_path)
    names = [sb.open_run(runs[name]).name for name in ("mean", "linear")]
    (of_records,), (of_folders,) = (compare_runs(r, known).tests for r in (names, [runs["mean"], runs["linear"]]))
    assert of_records.difference == pytest.approx(of_folders.difference, rel=1e-3)  # records keep four digits or more


def test_data_of_an_equation_that_is_not_declared_are_told_apart_by_their_fields(runs, tmp_path):
    for name, sigma in (("mean", 1), ("linear", 2)):
        record = sb.open_run(runs[name]).record
        data = {**record.datasets[0], "equation": "mine", "fields": {"points": 16, "sigma": sigma}}
        store.add(tmp_path, replace(record, datasets=(data,)))
    names = [sb.open_run(runs[name]).name for name in ("mean", "linear")]
    with pytest.raises(sb.UserError, match=r"different data \(mine sigma=1 and mine sigma=2\); paired tests need"):
        compare_runs(names, store.read(tmp_path))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["mean"], "compare takes at least 2 runs, got 1"),
        (["mean", "mean"], "was given twice; give different runs"),
        (["mean", "other"], "different samples (seed=3407 and 1); paired tests need the same ones"),
        (["mean", "nowhere"], "no such run: nowhere"),
        (["mean", "linear", "--metric", "rell2"], "did you mean 'rel_l2'?"),
        (["mean", "linear", "--metric", "std_ratio"], "std_ratio"),
        (["mean", "linear", "--figure", "c.jpg"], "a figure's name ends in"),
    ],
)
def test_mistakes_are_one_line(words, line, runs, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call("compare", *(runs.get(word, word) for word in words), "--results", tmp_path) == 2
    errors = capsys.readouterr().err.strip().splitlines()
    assert len(errors) == 1 and line in errors[0]
    assert not list(tmp_path.iterdir())
