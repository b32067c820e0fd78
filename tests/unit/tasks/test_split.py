"""The split: sizes, independence of n, and that no sample which is trained on is ever a test sample."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import spdebench as sb
from spdebench.tasks import Task, TaskSpec
from spdebench.training import part_for, score_on

TINY = {"points": 16, "frames": 10, "steps": 10, "truncation": 8}
WEIGHTS = "70:15:15"


@dataclass
class Named:
    """A file of native data, as far as a split looks at it."""

    n: int
    seed: int = 0
    imported: bool = False

    def __len__(self) -> int:
        return self.n

    @property
    def spec(self) -> Any:
        return SimpleNamespace(seed=self.seed)

    @property
    def identity(self) -> dict[str, Any]:
        return {"n": self.n, "seed": self.seed}


def rows_in(split: str, trained: Named, other: Named) -> Any:
    return TaskSpec(split=split).rows_in(other, [trained.identity])  # type: ignore[arg-type]


def test_every_block_of_twenty_is_divided_14_3_3():
    for seed in (0, 3407):
        rows = TaskSpec(seed=seed).rows(1200)
        for name, size in (("train", 14), ("val", 3), ("test", 3)):
            assert np.array_equal(np.bincount(rows[name] // 20, minlength=60), np.full(60, size))
        assert np.array_equal(np.sort(np.concatenate([*rows.values()])), np.arange(1200))


def test_the_first_block_of_the_default_seed_is_pinned():
    """The rule is a promise: other programs can repeat it, and files keep their parts."""
    rows = TaskSpec().rows(20)
    assert (rows["val"].tolist(), rows["test"].tolist()) == ([7, 10, 11], [2, 6, 13])


def test_positions_in_a_block_and_seeds_are_as_good_as_random():
    """Each of the 20 places is in the test part with probability 3/20; two seeds agree as often as chance says."""
    blocks = 3000
    tests = [TaskSpec(seed=seed).rows(20 * blocks)["test"] for seed in (1, 2)]
    counts = np.bincount(tests[0] % 20, minlength=20)
    assert abs(counts - 0.15 * blocks).max() < 4.5 * np.sqrt(blocks * 0.15 * 0.85)
    common = len(np.intersect1d(*tests))
    assert abs(common - 20 * blocks * 0.15**2) < 4.5 * np.sqrt(20 * blocks * 0.15**2)


def test_the_part_of_a_sample_does_not_depend_on_n():
    sizes = [3, 20, 33, 40, 57, 100]
    for small, large in itertools.combinations(sizes, 2):
        few, many = TaskSpec().rows(small), TaskSpec().rows(large)
        for name in few:
            assert np.array_equal(few[name], many[name][many[name] < small])
        assert np.array_equal(TaskSpec(n=small).rows(large)["train"], few["train"])


@pytest.mark.parametrize("split", ["blocks", WEIGHTS, "4:1:1"])
def test_no_pair_of_sizes_tests_on_what_was_trained_on(split):
    sizes = [*range(5, 50, 3), 60, 100, 121]
    for trained, other in itertools.product(sizes, sizes):
        own = TaskSpec(split=split).rows(trained)
        found = rows_in(split, Named(trained), Named(other))
        seen = np.union1d(own["train"], own["val"])
        assert not np.intersect1d(found.parts["test"], seen).size
        assert np.array_equal(found.seen, seen[seen < other])
        assert all((rows < other).all() for rows in found.parts.values())


@pytest.mark.parametrize(("trained", "other", "leaked"), [(12000, 1200, 105), (400, 200, 13)])
def test_files_of_one_seed_and_other_sizes(trained, other, leaked):
    """By weights alone many test samples of the other file were trained on; `rows_in` has none of them."""
    old = TaskSpec(split=WEIGHTS)
    own, theirs = old.rows(trained), old.rows(other)
    assert len(np.intersect1d(theirs["test"], own["train"])) == leaked
    for split in (WEIGHTS, "blocks"):
        found = rows_in(split, Named(trained), Named(other))
        own = TaskSpec(split=split).rows(trained)
        assert len(found.parts["test"]) >= 0.09 * other
        assert not np.intersect1d(found.parts["test"], np.union1d(own["train"], own["val"])).size


def test_a_file_with_another_seed_has_parts_of_its_own():
    found = rows_in("blocks", Named(40), Named(60, seed=1))
    assert not found.seen.size and len(found.parts["test"]) == 9


@pytest.mark.parametrize("split", ["blocks", WEIGHTS])
def test_a_task_and_a_run_refuse_samples_that_were_trained_on(split, tmp_path):
    phi = sb.equation("phi41", **TINY)
    data, longer, shorter = (sb.generate(phi, n=n, out=tmp_path) for n in (40, 60, 20))
    task = Task(data, split=split)
    seen = {row.numpy().tobytes() for part in (task.train, task.val) for row in part.dw}
    run = sb.train("mean", task, out=tmp_path / "runs", progress=False)
    for other in (longer, shorter):
        for part in (task.part("test", other), part_for(run, other)):
            assert len(part) and not seen & {row.numpy().tobytes() for row in part.dw}
    score_on(run, task.part("test", longer), "longer")
    with pytest.raises(sb.UserError, match="was trained or validated on the noise of 34 of these 60 samples"):
        score_on(run, task.part("all", longer), "all")
    assert list(run.record.shifts) == ["longer"]
    with pytest.raises(sb.UserError, match="unknown part 'tests'; did you mean 'test'"):
        task.part("tests", longer)
