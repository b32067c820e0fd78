"""Advice after a split that leaves a part empty: it works, or says how many samples are needed."""

from __future__ import annotations

import re

import pytest

import spdebench as sb
from spdebench.tasks import TaskSpec
from spdebench.tasks.split import working_split


@pytest.mark.parametrize("n", [*range(1, 41), 100, 1200])
def test_the_split_that_is_advised_works(n):
    advice = working_split(n)
    if n < 5:
        assert "at least 5 samples are needed" in advice and f"there are {n}" in advice
        return
    found = re.fullmatch(r"try split=(\d+:\d+:\d+)", advice)
    assert found
    sizes = {name: len(rows) for name, rows in TaskSpec(split=found[1]).rows(n).items()}
    assert sizes["train"] >= 1 and sizes["val"] >= 1 and sizes["test"] >= 3 and sum(sizes.values()) == n


def test_five_samples_are_trained_on_with_the_advised_split(tmp_path):
    path = sb.generate(sb.equation("phi41", points=16, frames=10, steps=10, truncation=8), n=5, out=tmp_path)
    options = {"out": tmp_path / "runs", "config": {"width": 4}, "epochs": 1, "progress": False}
    with pytest.raises(sb.UserError, match="5 samples with split=70:15:15 leave none for validation; try split=1:1:3"):
        sb.train("deeponet", sb.Task(path, split="70:15:15"), **options)
    with pytest.raises(sb.UserError, match=r"5 samples with split=blocks leave .*; try split=1:1:3"):
        sb.train("deeponet", sb.Task(path), **options)
    assert sb.train("deeponet", sb.Task(path, split="1:1:3"), **options).finished
    with pytest.raises(sb.UserError, match="leave 1 for the test, at least 3"):
        sb.train("deeponet", sb.Task(path, split="3:1:1"), **options)
