"""What a set of runs says: means over seeds, ranks, p-values, and numbers as text."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from fake_records import dataset, record
from spdebench.records import summary


def test_mean_and_deviation_over_seeds():
    found = summary.mean_over_seeds([0.1, None, 0.2, 0.3])
    assert (found.mean, found.std, found.count) == (pytest.approx(0.2), pytest.approx(0.1), 3)
    assert summary.mean_over_seeds([None]) is None and summary.mean_over_seeds([0.5]).std is None
    diverged = summary.mean_over_seeds([0.1, math.inf])
    assert diverged.mean == math.inf and diverged.std is None
    assert math.isnan(summary.mean_over_seeds([math.inf, -math.inf]).mean)


def test_the_best_is_nearest_to_the_ideal():
    assert summary.ranked({"a": 0.3, "b": 0.1, "c": math.nan, "d": None}, "rel_l2") == ["b", "a"]
    assert summary.ranked({"a": 0.4, "b": 1.05}, "std_ratio") == ["b", "a"]
    assert summary.ideal("something else") == 0.0


def test_no_model_at_the_floor_is_ahead_of_another():
    errors = {"a": 0.115, "b": 0.1, "c": 0.13, "d": math.nan, "e": None}
    assert summary.leaders(errors, "rel_l2") == ["b"]
    assert summary.leaders(errors, "rel_l2", floor=0.1) == ["b", "a"]  # within 1.2 of it
    assert summary.leaders(errors, "rel_l2", floor=0.08) == ["b"]  # the best is above 1.2 of it
    assert summary.leaders(errors, "mse", floor=0.1) == ["b"]  # the floor is one of the main metric
    assert summary.leaders({}, "rel_l2", floor=0.1) == []
    assert not summary.at_floor(None, 0.1) and not summary.at_floor(0.1, None)


def test_samples_are_averaged_only_where_all_runs_have_them():
    runs = [record("fno", dataset(8, 0.0), seed, samples={"rel_l2": [seed, 2.0]}) for seed in range(2)]
    assert summary.mean_samples(runs, "rel_l2", "test") == pytest.approx([0.5, 2.0])
    assert summary.mean_samples(runs, "mse", "test") is None
    other = record("fno", dataset(8, 0.0), 2, samples={"rel_l2": [1.0]})
    assert summary.mean_samples([*runs, other], "rel_l2", "test") is None


def test_p_values_need_the_same_samples():
    rng = np.random.default_rng(0)
    first = rng.random(40)
    assert summary.p_value(first, first + 0.5, "rel_l2") < 0.01
    assert summary.p_value(first, first[:3], "rel_l2") is None and summary.p_value(first, None, "rel_l2") is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert summary.p_value(first, np.nan * first, "rel_l2") is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (0.003123, "0.00312"), (12.12, "12.1"), (3.1e-7, "3.1e-07"), (0.0, "0.00"), (math.inf, "inf")],
)
def test_numbers_have_three_digits(value, shown):
    assert summary.number(value) == shown


def test_other_numbers_as_text():
    assert summary.mean_and_std(0.0973, 0.0041) == "0.0973±4e-3" and summary.mean_and_std(0.5, None) == "0.500"
    assert [summary.count(n) for n in (None, 0, 12, 1234, 3283457)] == ["", "", "12", "1.23k", "3.28M"]
    assert [summary.rough(x) for x in (0.0312, 7.54, 623.0, 0.0)] == ["0.031", "7.5", "620", "0"]
    assert (summary.probability(1e-5), summary.probability(0.123)) == ("p<0.001", "p=0.12")
    assert summary.ratio(0.2, 0.1) == 2.0 and summary.ratio(None, 0.1) is None and summary.ratio(0.2, 0) is None
