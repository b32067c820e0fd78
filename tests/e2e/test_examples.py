"""Every example runs, in an empty folder, and says something true."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
    examples = {p.stem: str(p) for p in EXAMPLES}
    own = ["--with", examples["own_model"], "--with", examples["own_metric"]]

    def command(*words: str) -> str:
        call = [sys.executable, "-m", "spdebench", *own, *words]
        done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    command("generate", "phi41", "points=16", "truncation=8", "frames=10", "steps=10", "-n", "40", "--out", "data")
    data = str(next((tmp_path / "data").glob("*.parquet")))
    command("train", "walker", data, "epochs=2", "width=4", "--out", "runs")
    run = str(next((tmp_path / "runs").glob("walker-*")))
    command("predict", run, data, "--out", "prediction.npy")
    assert "peak" in command("evaluate", "prediction.npy", "--truth", data, "--metrics", "rel_l2,peak")
