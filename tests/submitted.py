"""A small submission as text, for tests of cards, scores, the leaderboard and the site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spdebench.challenge.submission import Scored, scores_text
from spdebench.records import MetricValue

CARD = '''title = "A small regression"
model = "step"
authors = ["A. Author", "B. Author"]
contact = "author@example.org"
description = """
A regression of one time step,
iterated."""
parameters = 120
training_data = "spdebench suite core --generate --only phi41, seed 0"
seeds = [0, 1, 2]
code = "https://example.org/code/tree/v1"
command = "spdebench train step data/phi41*.parquet"
hardware = "2 cores of a processor"
training_minutes = 0.5

[declaration]
no_solver_used = true
no_test_truth_used = true
no_challenge_inputs_in_training = true
'''


def scored(problem: str = "phi41", seed: int = 0, value: float = 0.25, **changes: Any) -> Scored:
    """Scores of one prediction; the metric by which it is ranked has the value ``value``."""
    name = "rel_l2" if changes.get("seen") is None else "energy_score"
    values = {name: MetricValue(value, 0.9 * value, 1.1 * value), "l2": MetricValue(2 * value)}
    given = {"suite": "core", "problem": problem, "seed": seed, "n": 20, "scores": values, "hidden": True}
    return Scored(**{**given, "challenge": "0123456789abcdef" * 4, "seal": "5" * 64, **changes})


def write_submission_folder(folder: Path, results: tuple[Scored, ...] | None = None, card: str = CARD) -> Path:
    """A folder with scores, and a card that names their seeds."""
    found = results or (scored(),)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "card.toml").write_text(card.replace("[0, 1, 2]", str(sorted({each.seed for each in found}))))
    (folder / "scores.json").write_text(scores_text(found))
    return folder
