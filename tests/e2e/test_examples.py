"""Every example runs, in an empty folder, and says something true."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import spdebench as sb

COMMANDS = """
import sys
from pathlib import Path
from spdebench.cli.main import main

own = [word for file in sys.argv[1:] for word in ("--with", file)]
data = str(next(Path("data").glob("*.parquet")))
for words in (
    ["train", "walker", data, "epochs=2", "width=4", "--out", "runs"],
    ["predict", "RUN", data, "--out", "prediction.npy"],
    ["evaluate", "prediction.npy", "--truth", data, "--metrics", "rel_l2,peak"],
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
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    if path.stem == "own_model":
        scores = {line.split()[0]: float(line.split()[3]) for line in done.stdout.splitlines() if "relative L2" in line}
        assert scores["walker"] < 0.2 * scores["mean"]


def test_own_model_and_metric_on_the_command_line(tmp_path):
    """train, predict and evaluate with classes of one's own, from one file each."""
    sb.generate(sb.equation("phi41", points=16, truncation=8, frames=10, steps=10), n=40, out=tmp_path / "data")
    examples = {p.stem: str(p) for p in EXAMPLES}
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, examples["own_model"], examples["own_metric"]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "peak" in done.stdout
