"""What every registered metric promises; a new one is covered by its being declared."""

from __future__ import annotations

import functools
import math
import re

import numpy as np
import pytest
import torch

from spdebench.grids import Grid
from spdebench.metrics import LAW_METRICS, METRICS, evaluate, metric_title

GRIDS = {
    "1-D Dirichlet": Grid.unit(32, boundary="dirichlet"),
    "1-D periodic": Grid((17,), (-1.0,), (2.0,)),
    "2-D periodic": Grid((16, 16), (0.0, 0.0), (1.0, 2.0)),
    "3-D periodic": Grid.unit(8, 3),
}
N, FRAMES = 12, 10


def fields(grid: Grid, seed: int) -> np.ndarray:
    """Random fields, correlated in time and space, 0 on a Dirichlet boundary."""
    out = np.random.default_rng(seed).standard_normal((N, FRAMES, *grid.points))
    for axis in range(2, out.ndim):
        out = out + 0.5 * np.roll(out, 1, axis)
    out = np.cumsum(out, axis=1) / 3 + 0.5
    if not grid.periodic:
        for axis in range(2, out.ndim):
            np.moveaxis(out, axis, 0)[0] = 0
    return out


APPLY = {
    label: set(evaluate(u := fields(grid, 0), u, grid, metrics="all", resamples=0)) for label, grid in GRIDS.items()
}
CASES = [(name, label) for name in METRICS for label in GRIDS if name in APPLY[label]]
cases = pytest.mark.parametrize(("name", "label"), CASES)


def score(v, u, name: str, label: str, **options):
    return evaluate(v, u, GRIDS[label], metrics=[name], **{"resamples": 0, **options})[name]


@functools.cache
def plain(name: str, label: str):
    """The score of `pair`, which every promise is compared with."""
    return score(*pair(label), name, label)


def pair(label: str) -> tuple[np.ndarray, np.ndarray]:
    """A prediction that is damped, shifted and too rough, and the truth."""
    u = fields(GRIDS[label], 0)
    return 0.8 * u + 0.3 * np.random.default_rng(1).standard_normal(u.shape) ** 3 + 0.1, u


def test_every_metric_is_covered_and_has_a_grid_it_applies_to() -> None:
    assert {name for name, _ in CASES} == set(METRICS)


def test_titles_are_words_and_all_different():
    titles = [metric_title(name) for name in (*METRICS, *LAW_METRICS)]
    assert len(set(titles)) == len(titles) and not any("_" in title for title in titles)
    assert metric_title("sigw1(depth=3)") == "Sig-W1 (depth=3)" and metric_title("mine") == "mine"


@pytest.mark.parametrize("name", list(METRICS))
def test_the_docstring_opens_with_a_formula_and_names_its_source(name: str) -> None:
    text = METRICS[name].formula()
    first, rest = text.split("\n", 1)
    assert re.search(r"sum_|rms_|mean_|RMSE /|\| \w+_V - \w+_U \|", first), first
    assert rest.lstrip().startswith("Source:")
    assert METRICS[name]().label == name


@cases
def test_the_truth_scores_the_ideal_and_a_wrong_field_does_not(name: str, label: str) -> None:
    _, u = pair(label)
    perfect, wrong = score(u, u, name, label), plain(name, label)
    assert perfect.value == pytest.approx(perfect.ideal, abs=1e-9)
    assert math.isfinite(wrong.value) and abs(wrong.value - wrong.ideal) > 1e-3


@cases
def test_the_order_of_samples_does_not_matter(name: str, label: str) -> None:
    v, u = pair(label)
    order = np.random.default_rng(0).permutation(N)
    first, second = plain(name, label), score(v[order], u[order], name, label)
    assert second.value == pytest.approx(first.value, rel=1e-5)
    if first.samples is not None:
        assert second.samples == pytest.approx(first.samples[order], rel=1e-4)


@cases
def test_single_precision_agrees(name: str, label: str) -> None:
    v, u = pair(label)
    narrow = score(v.astype(np.float32), u.astype(np.float32), name, label)
    assert narrow.value == pytest.approx(plain(name, label).value, rel=1e-4)


@cases
def test_chunks_do_not_matter(name: str, label: str) -> None:
    v, u = pair(label)
    whole, pieces = plain(name, label), score(v, u, name, label, chunk_bytes=1)
    assert pieces.value == pytest.approx(whole.value, rel=1e-5)
    if whole.curve is not None:
        assert pieces.curve == pytest.approx(whole.curve, rel=1e-5)


@cases
def test_asking_for_intervals_does_not_change_the_value(name: str, label: str) -> None:
    v, u = pair(label)
    with_interval = score(v, u, name, label, resamples=200)
    assert with_interval.value == pytest.approx(plain(name, label).value, rel=1e-12)
    ends = with_interval.interval
    if ends is not None:
        assert ends.low <= ends.high and ends.level == 0.95
    if with_interval.samples is not None:
        assert len(with_interval.samples) == N
        power = 2 if with_interval.reduction == "rms" else 1
        assert np.mean(with_interval.samples**power) ** (1 / power) == pytest.approx(with_interval.value, rel=1e-5)


@cases
def test_a_nan_gives_inf_and_a_count(name: str, label: str) -> None:
    v, u = pair(label)
    v[4].reshape(FRAMES, -1)[3, 5] = np.nan
    found = evaluate(v, u, GRIDS[label], metrics=[name], resamples=0)
    assert found[name].value == math.inf and found.counts["nonfinite_samples"] == 1


@pytest.mark.gpu
@cases
def test_the_device_does_not_matter(name: str, label: str) -> None:
    v, u = pair(label)
    there = score(torch.from_numpy(v).cuda(), torch.from_numpy(u).cuda(), name, label)
    assert there.value == pytest.approx(plain(name, label).value, rel=1e-4)
