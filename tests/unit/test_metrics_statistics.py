"""Intervals, comparisons between models, and floors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.metrics import Score, Scores, compare, evaluate, floors, holm, over_seeds
from spdebench.metrics.bootstrap import interval, weighted_mean

GRID = Grid.unit(8)


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def scored(samples, reduction="mean", kind="samplewise") -> Scores:
    values = np.asarray(samples, dtype=float)
    value = float(np.nanmean(values)) if reduction == "mean" else float(np.sqrt(np.nanmean(values**2)))
    return Scores({"m": Score("m", value, kind, samples=values, reduction=reduction)}, {}, None, {})


# --- intervals --------------------------------------------------------------------------------------------------------
def test_bca_agrees_with_scipy() -> None:
    x = np.random.default_rng(3).exponential(size=50)
    ours = interval(weighted_mean(x), 50, resamples=20_000)
    theirs = stats.bootstrap((x,), np.mean, n_resamples=20_000, method="BCa", rng=0).confidence_interval
    assert ours is not None and ours.method == "bca"
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.02 * x.std())


def test_bca_covers_a_skewed_mean() -> None:
    """400 samples of 40 exponentials: a 90 % interval covers 1 in 83..95 % (s.e. 1.5 %; BCa is a little short)."""
    draws = np.random.default_rng(0).exponential(size=(400, 40))
    ends = [interval(weighted_mean(x), 40, resamples=1000, level=0.9) for x in draws]
    share = np.mean([e.low <= 1 <= e.high for e in ends])
    assert 0.83 < share < 0.95
    below, above = np.mean([e.high < 1 for e in ends]), np.mean([e.low > 1 for e in ends])
    assert below < 0.12 and above < 0.09


def test_excluded_samples_stay_out_of_the_interval() -> None:
    x = np.concatenate([np.linspace(1, 2, 30), [math.nan] * 3])
    ends = interval(weighted_mean(x), 33)
    assert ends is not None and 1.3 < ends.low < 1.5 < ends.high < 1.7
    assert interval(weighted_mean(np.full(5, math.nan)), 5) is None
    flat = interval(weighted_mean(np.full(9, 2.0)), 9)
    assert (flat.low, flat.high) == pytest.approx((2, 2))


def test_a_strong_bias_is_turned_round() -> None:
    """|mean| of centred values is 0 at best: every resample is larger, and the basic interval says so."""
    x = noise(50)
    x -= x.mean() - 1e-9
    ends = interval(lambda w: np.abs(weighted_mean(x)(w)), 50)
    assert ends.method == "basic" and ends.low == 0.0 and ends.high < 1e-2


def test_the_root_mean_square_is_resampled_as_such() -> None:
    u = noise(40, 3, 8)
    v = u + np.linspace(0.1, 1, 40)[:, None, None]
    scores = evaluate(v, u, GRID, metrics=["mse", "rmse"])
    square, root = scores["mse"].interval, scores["rmse"].interval
    assert (root.low**2, root.high**2) == pytest.approx((square.low, square.high), rel=0.01)


# --- models against each other ----------------------------------------------------------------------------------------
def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]


def test_a_small_but_steady_difference_is_found_in_pairs() -> None:
    """Scores vary by 1 between samples, A beats B by 0.05 +- 0.02 on each: only a paired test can tell."""
    hard = np.abs(noise(100)) + 1
    gain = 0.05 + 0.02 * noise(100, seed=1)
    a, b = scored(hard), scored(hard + gain)
    (row,) = compare({"a": a, "b": b}, "m")
    assert row.difference == pytest.approx(-gain.mean())
    assert row.interval.low < -gain.mean() < row.interval.high < 0
    assert row.bootstrap < 0.001 and row.wilcoxon < 1e-6 and row.better == "a"
    assert stats.ttest_ind(hard, hard + gain).pvalue > 0.3


def test_equal_models_are_not_told_apart() -> None:
    x = np.abs(noise(60)) + 1
    (row,) = compare({"a": scored(x), "b": scored(x)}, "m")
    assert row.bootstrap == 1 and row.wilcoxon == 1 and row.better is None
    chance = scored(x + 0.1 * noise(60, seed=5))
    (row,) = compare({"a": scored(x), "b": chance}, "m")
    assert row.bootstrap_holm > 0.05 and row.better is None


def test_false_alarms_are_rare_under_the_null() -> None:
    """150 pairs of equal models: about 5 % have p < 0.05 (s.e. 1.8 %)."""
    draws = np.random.default_rng(2).standard_normal((150, 40))
    zero = scored(np.zeros(40))
    p = [compare({"a": scored(x), "b": zero}, "m", resamples=500)[0].bootstrap for x in draws]
    assert np.mean(np.array(p) < 0.05) < 0.12


def test_all_pairs_are_corrected_together() -> None:
    x = np.abs(noise(40)) + 1
    rows = compare({"a": scored(x), "b": scored(x + 0.1), "c": scored(x + 0.2)}, "m")
    assert [(r.a, r.b) for r in rows] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert all(r.bootstrap_holm >= r.bootstrap for r in rows)
    assert [r.wilcoxon_holm for r in rows] == pytest.approx(holm([r.wilcoxon for r in rows]))


def test_laws_are_compared_without_ranks_and_roots_as_roots() -> None:
    x = np.abs(noise(40)) + 1
    (row,) = compare({"a": scored(x, kind="law"), "b": scored(x + 1, kind="law")}, "m")
    assert row.wilcoxon is None and row.wilcoxon_holm is None and row.better == "a"
    (row,) = compare({"a": scored(x, "rms"), "b": scored(2 * x, "rms")}, "m")
    assert row.difference == pytest.approx(-np.sqrt(np.mean(x**2)))


def test_samples_without_a_value_are_left_out_of_both() -> None:
    x, y = np.array([1.0, 2, 3, 4, math.nan]), np.array([2.0, 3, 4, math.nan, 9])
    (row,) = compare({"a": scored(x), "b": scored(y)}, "m")
    assert row.excluded == 2 and row.difference == pytest.approx(-1)


@pytest.mark.parametrize(
    ("models", "line"),
    [
        ({"a": scored([1, 2, 3])}, "at least 2 models"),
        ({"a": scored([1, 2, 3]), "b": scored([1, 2])}, "different sizes"),
        ({"a": scored([1, 2, 3]), "b": scored([1, math.inf, 3])}, "'m' of 'b' is not finite"),
        ({"a": scored([1, 2, 3]), "b": Scores({"m": Score("m", 1.0, "law")}, {}, None, {})}, "no per-sample values"),
        ({"a": scored([1, math.nan, 3]), "b": scored([1, 2, 3])}, "have 2 common samples"),
    ],
)
def test_comparisons_that_make_no_sense(models, line: str) -> None:
    with pytest.raises(UserError, match=line):
        compare(models, "m")


def test_two_levels_hold_both_kinds_of_chance() -> None:
    """score(seed, sample) = s + n: the variance of the grand mean is var(s)/S + var(n)/N."""
    seeds, samples = 40, 50
    s, n = noise(seeds), 2 * noise(samples, seed=1)
    runs = [scored(5 + a + n) for a in s]
    found = over_seeds(runs, "m")
    assert found.value == pytest.approx(5 + s.mean() + n.mean())
    assert found.seed_std == pytest.approx(s.std(ddof=1))
    assert found.sample_error == pytest.approx(n.std() / math.sqrt(samples), rel=0.05)
    width = 2 * 1.96 * math.sqrt(s.var() / seeds + n.var() / samples)
    assert found.interval.high - found.interval.low == pytest.approx(width, rel=0.06)
    same = over_seeds([scored(5 + n)] * 5, "m")
    assert same.seed_std == 0 and same.interval.high - same.interval.low < width
    with pytest.raises(UserError, match="at least 2 training seeds"):
        over_seeds(runs[:1], "m")
    with pytest.raises(UserError, match="run 1 has a non-finite"):
        over_seeds([scored([1, 2, 3]), scored([1, math.inf, 3])], "m")


# --- floors -----------------------------------------------------------------------------------------------------------
def walks(n: int, seed: int = 0) -> np.ndarray:
    steps = noise(n, 6, 8, seed=seed) + noise(n, 6, 1, seed=seed + 100)  # correlation 1/2 between any two points
    return np.cumsum(steps, axis=1)


def test_marks_stand_in_their_order() -> None:
    """For metrics of laws a fresh ensemble scores low, the mean field high; for errors on paths both are large."""
    truth = walks(120)
    marks = floors(truth, GRID, metrics=["rel_l2", "nrmse", "acf", "corr", "sigw1_std", "std_ratio"])
    low, high = marks.independent.summary(), marks.mean_field.summary()
    for name in ("acf", "corr", "sigw1_std"):
        assert 0 < low[name] < 0.6 * high[name], name
    assert high["nrmse"] == pytest.approx(1) and low["nrmse"] == pytest.approx(math.sqrt(2), rel=0.1)
    assert high["std_ratio"] == pytest.approx(0, abs=1e-9) and low["std_ratio"] == pytest.approx(1, rel=0.1)
    assert marks.samples == 60 and marks.converged is None
    row = marks.rows()[0]
    assert row == {"metric": "rel_l2", "independent": low["rel_l2"], "mean_field": high["rel_l2"], "converged": None}


def test_more_samples_lower_the_floor() -> None:
    """Halves of 400 against two ensembles of 400, ten times each: the floor falls like N^{-1/2}."""
    runs = []
    for k in range(10):
        truth = walks(400, k)
        other = floors(truth, GRID, metrics="acf", independent=walks(400, 50 + k))
        runs.append((floors(truth, GRID, metrics="acf"), other))
    halves, whole = np.mean([[a.independent["acf"].value, b.independent["acf"].value] for a, b in runs], axis=0)
    assert (runs[0][0].samples, runs[0][1].samples) == (200, 400)
    assert halves / whole == pytest.approx(math.sqrt(2), rel=0.15)


def test_the_solvers_own_distance() -> None:
    truth = walks(20)
    marks = floors(truth, GRID, metrics=["rel_l2"], converged=truth / 1.25)
    assert marks.converged["rel_l2"].value == pytest.approx(0.25)


def test_halves_need_six_samples() -> None:
    with pytest.raises(UserError, match="at least 6 samples"):
        floors(walks(5), GRID, metrics="acf")
