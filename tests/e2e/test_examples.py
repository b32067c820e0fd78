"""Every example runs, in an empty folder, and says something true."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import spdebench as sb
from in_children import run_code, run_script

COMMANDS = """
import sys
from pathlib import Path
from spdebench.cli.main import main

own = [word for file in sys.argv[1:] for word in ("--with", file)]
data = str(next(Path("data").glob("*.parquet")))
for words in (
    ["train", "walker", data, "epochs=2", "width=4", "--out", "runs"],
    ["predict", "RUN", data, "--out", "prediction.npy"],
    ["evaluate", "prediction.npy", "--truth", data, "--run", "RUN", "--metrics", "rel_l2,peak"],
):
    words = [str(next(Path("runs").glob("walker-*"))) if word == "RUN" else word for word in words]
    try:
        main([*own, *words])
    except SystemExit as end:
        assert end.code == 0, words
"""
EXAMPLES = sorted(p for p in (Path(__file__).parents[2] / "examples").glob("*.py") if p.stem != "demo")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs(path, tmp_path):
    done = run_script(path, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    if path.stem == "own_model":
        scores = {line.split()[0]: float(line.split()[3]) for line in done.stdout.splitlines() if "relative L2" in line}
        assert scores["walker"] < 0.2 * scores["mean"]


def test_own_model_and_metric_on_the_command_line(tmp_path):
    """train, predict and evaluate with classes of one's own, from one file each."""
    sb.generate(sb.equation("phi41", points=16, truncation=8, frames=10, steps=10), n=40, out=tmp_path / "data")
    examples = {p.stem: str(p) for p in EXAMPLES}
    done = run_code(COMMANDS, examples["own_model"], examples["own_metric"], folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "peak" in done.stdout


@pytest.mark.slow
def test_own_table_and_a_model_of_ones_own_in_it(tmp_path):
    """A table from a file is listed, filled and shown; a model from a file has a row once it is named."""
    examples = {p.stem: str(p) for p in EXAMPLES}
    own = ["--with", examples["own_table"], "--with", examples["own_model"]]

    def command(*words: str) -> str:
        call = [sys.executable, "-m", "spdebench", *own, *words]
        done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "noise-levels" in command("list", "tables")
    empty = command("table", "noise-levels", "--seeds", "1")
    assert "FNO" in empty and "solver vs fine reference" in empty and "Walker" not in empty
    assert "walker" in command("table", "phi41-periodic", "--plan", "--only", "walker", "--seeds", "1", "--json")
    made = command("table", "noise-levels", "--run", "--only", "walker,mean,sigma 1", "--seeds", "1")
    assert "Walker" in made and "failed" not in made
    shown = command("table", "noise-levels", "--seeds", "1", "--format", "csv")  # now it has records
    rows = [line.split(",") for line in shown.splitlines()]
    assert {row[4] for row in rows[1:]} >= {"Walker", "FNO", "mean", "solver"}
    assert [bool(row[9]) for row in rows if row[4] == "Walker"] == [True, True]
