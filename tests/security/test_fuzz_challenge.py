"""Damaged and forged cards, scores, manifests and predictions: an object, or one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hostile import cases, changed, changes, edited, edits, obeys_the_law
from hypothesis import given
from hypothesis import strategies as st

from spdebench.challenge import read_submission
from spdebench.challenge.inputs import Challenge, open_challenge
from spdebench.challenge.manifest import ChallengeProblem, Manifest, manifest_text
from spdebench.challenge.predictions import open_predictions, write_submission
from spdebench.challenge.secret import commitment
from spdebench.challenge.submission import scores_text
from spdebench.equations import equation
from spdebench.equations.identity import to_dict
from submitted import CARD, scored

SECRET = bytes(range(32))
EQ = to_dict(equation("phi41", points=16, truncation=8, frames=4, steps=4))
PROBLEMS = (
    ChallengeProblem(name="phi41", equation=EQ, n=4, sha256="0" * 64),
    ChallengeProblem(name="phi41", equation=EQ, n=4, sha256="0" * 64, seen=2, members=3),
)
MANIFEST = Manifest(suite="core", commitment=commitment(SECRET), problems=PROBLEMS).sealed(SECRET)
SCORES = scores_text((scored(), scored(seen=4, members=2, again=0.2)))
PREDICTION = "predictions/phi41-seed0.parquet"


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> tuple[Path, dict[str, bytes]]:
    """A submission with predictions and scores, and the bytes of its files."""
    place = tmp_path_factory.mktemp("fuzz")
    (place / "card.toml").write_text(CARD.replace("[0, 1, 2]", "[0]"))
    folder = place / "mine"
    write_submission(folder, Challenge(place, MANIFEST), place / "card.toml", {("phi41", 0): np.ones((4, 5, 16))})
    (folder / "scores.json").write_text(SCORES)
    return folder, {name: (folder / name).read_bytes() for name in ("card.toml", "manifest.json", PREDICTION)}


def look_all_over(folder: Path) -> None:
    obeys_the_law(lambda: read_submission(folder))
    obeys_the_law(lambda: open_challenge(folder).inputs("phi41"))
    found = obeys_the_law(lambda: open_predictions(folder))
    if found is not None:
        obeys_the_law(lambda: [prediction.read() for prediction in found.predictions])
        obeys_the_law(lambda: found.manifest.check(SECRET, "it"))


@cases(150)
@given(st.sampled_from(("card.toml", "manifest.json", PREDICTION)), edits)
def test_a_damaged_submission(files, name, steps):
    folder, whole = files
    (folder / name).write_bytes(edited(whole[name], steps))
    look_all_over(folder)
    (folder / name).write_bytes(whole[name])


@cases(100)
@given(changes)
def test_a_forged_manifest_and_forged_scores(files, steps):
    folder, whole = files
    (folder / "manifest.json").write_text(changed(json.loads(manifest_text(MANIFEST)), steps))
    (folder / "scores.json").write_text(changed(json.loads(SCORES), steps))
    look_all_over(folder)
    (folder / "manifest.json").write_bytes(whole["manifest.json"])
    (folder / "scores.json").write_text(SCORES)
