"""The card of a dataset states the three numbers of its problem."""

from __future__ import annotations

import json
from pathlib import Path

import spdebench as sb
from spdebench.report.card import card_facts, render_card

SMALL = {"points": 16, "truncation": 8, "frames": 10, "sigma": 1.0}


def test_a_card_states_floor_nonlinearity_and_identifiability(tmp_path: Path) -> None:
    """Half of the steps are stored: the floor is above rounding, and `step` cannot be below it."""
    file = sb.generate(sb.equation("phi41", steps=20, **SMALL), n=60, out=tmp_path)
    facts = card_facts(sb.open_dataset(file), samples=2)
    problem = facts["problem"]
    assert 1e-3 < problem["floor"]["value"] < problem["identifiability"] < problem["nonlinearity"]
    assert json.loads(json.dumps(facts["problem"])) == problem
    text = render_card(facts)
    assert "drawn 8 times for each of 16 samples" in text and "The regressions used 60 samples" in text
    assert f"| nonlinearity | {problem['nonlinearity']:.3g} | `linear` with the exact kernel |" in text


def test_a_card_of_few_samples_says_what_it_leaves_out(tmp_path: Path) -> None:
    file = sb.generate(sb.equation("phi41", steps=10, **SMALL), n=6, out=tmp_path)
    text = render_card(card_facts(sb.open_dataset(file), samples=2))
    assert "| identifiability | - | 6 samples are too few for a regression |" in text
    assert "the input of a model determines the solution, up to rounding" in text
