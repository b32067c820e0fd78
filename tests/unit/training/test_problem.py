"""The three numbers of a problem: floor, nonlinearity and identifiability."""

from __future__ import annotations

from pathlib import Path

import pytest

import spdebench as sb
from spdebench.tasks import TaskSpec


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    eq = sb.equation("phi41", points=16, truncation=8, frames=10, steps=10, sigma=1.0)
    return sb.generate(eq, n=60, out=tmp_path_factory.mktemp("data"))


def test_they_are_the_errors_of_the_two_regressions(file: Path, tmp_path: Path) -> None:
    found = sb.problem_numbers(sb.open_dataset(file))
    assert (found.floor.kind, found.samples, found.notes) == ("exact", 60, {})
    assert found.floor.value < 1e-6
    task = sb.Task(file)
    linear = sb.train("linear", task, out=tmp_path, config={"kernel": "exact"}, progress=False)
    step = sb.train("step", task, out=tmp_path, progress=False)
    assert found.nonlinearity == pytest.approx(linear.scores["rel_l2"].value, rel=1e-6)
    assert found.identifiability == pytest.approx(step.scores["rel_l2"].value, rel=1e-6)
    assert found.identifiability < 1e-5 < 0.01 < found.nonlinearity


def test_sub_sampling_raises_the_floor(file: Path) -> None:
    found = sb.problem_numbers(sb.open_dataset(file), TaskSpec(every=5), draws=2)
    assert found.floor.kind == "conditional"
    assert 0.01 < found.floor.value < found.identifiability


def test_few_samples_give_a_floor_and_a_word(tmp_path: Path) -> None:
    eq = sb.equation("phi41", points=16, truncation=8, frames=10, steps=10)
    found = sb.problem_numbers(sb.open_dataset(sb.generate(eq, n=8, out=tmp_path)))
    assert (found.nonlinearity, found.identifiability) == (None, None)
    assert found.notes["identifiability"] == "8 samples are too few for a regression"
    assert found.floor.truths == 8
