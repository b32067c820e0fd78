"""Auto- and cross-correlation errors by closed forms, and the rules for pairs that have no correlation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from spdebench.grids import Grid
from spdebench.metrics import Pair, evaluate, lag_profile
from spdebench.metrics.correlation import CrossCorrelation

A = np.array([1.0, -1.0, 1.0, -1.0])  # two uncorrelated columns of mean 0 and equal size
B = np.array([1.0, 1.0, -1.0, -1.0])


def mix(rho: float) -> np.ndarray:
    """A column with correlation rho to A."""
    return rho * A + math.sqrt(1 - rho**2) * B


def in_time(rho: float, points: int = 4) -> np.ndarray:
    """Two scored frames with correlation rho at every point (after an initial frame)."""
    frames = np.stack([0 * A, A, mix(rho)], axis=1)
    return np.repeat(frames[:, :, None], points, axis=2)


def in_space(rho: float) -> np.ndarray:
    """Four points A, mix, A, mix at one scored frame: of 6 pairs 2 have correlation 1 and 4 have rho."""
    field = np.stack([A, mix(rho), A, mix(rho)], axis=1)
    return np.stack([0 * field, field], axis=1)


def rough(n: int = 40, frames: int = 6, points: int = 8, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed).standard_normal((n, frames, points))
    return np.cumsum(draw + 0.5 * np.roll(draw, 1, 2), axis=1)


def test_closed_forms() -> None:
    acf = evaluate(in_time(0.2), in_time(0.9), Grid.unit(4), metrics="acf")["acf"]
    assert acf.value == pytest.approx(0.7, abs=1e-6)
    assert acf.curve == pytest.approx([0.7, 0.7], abs=1e-6)
    corr = evaluate(in_space(-0.5), in_space(0.5), Grid.unit(4), metrics="corr")["corr"]
    assert corr.value == pytest.approx(4 / 6, abs=1e-6)
    assert corr.details["valid_pair_fraction"] == 1.0


def test_against_numpy_on_random_fields() -> None:
    u = rough()
    v = 0.8 * u + 0.3 * rough(seed=1)
    scores = evaluate(v, u, Grid.unit(8), metrics=["acf", "corr"], resamples=0)
    upper = np.triu_indices(5, 1)
    acf = np.mean([np.abs(np.corrcoef(v[:, 1:, i].T) - np.corrcoef(u[:, 1:, i].T))[upper] for i in range(8)])
    assert scores["acf"].value == pytest.approx(acf, rel=1e-5)
    upper = np.triu_indices(8, 1)
    curve = [np.abs(np.corrcoef(v[:, t].T) - np.corrcoef(u[:, t].T))[upper].mean() for t in range(1, 6)]
    assert scores["corr"].curve == pytest.approx(curve, rel=1e-5)
    assert scores["corr"].value == pytest.approx(np.mean(curve), rel=1e-5)


def test_space_is_flattened_in_two_dimensions() -> None:
    u, v = rough(points=16), rough(points=16, seed=1)
    flat = evaluate(v, u, Grid.unit(16), metrics=["acf", "corr"], resamples=0).summary()
    square = [f.reshape(40, 6, 4, 4) for f in (v, u)]
    assert evaluate(*square, Grid.unit(4, 2), metrics=["acf", "corr"], resamples=0).summary() == flat


@pytest.mark.parametrize("size", [1e-5, 1.0, 1e30])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_epsilon_shrinks_a_correlation(size: float, dtype) -> None:
    v, u = (size * in_time(rho) for rho in (0.0, 0.9))
    found = evaluate(v.astype(dtype), u.astype(dtype), Grid.unit(4), metrics="acf")["acf"].value
    assert found == pytest.approx(0.9, abs=1e-5)


def test_a_large_mean_does_not_hide_small_fluctuations() -> None:
    u, v = (3e3 + in_time(rho).astype(np.float32) for rho in (0.9, 0.1))
    assert evaluate(v, u, Grid.unit(4), metrics="acf")["acf"].value == pytest.approx(0.8, abs=1e-3)


def test_pairs_where_the_truth_is_constant_are_left_out() -> None:
    """Fixed boundary values: a quarter of the points never vary; what the model does there is not scored here."""
    u, v = in_space(0.9), in_space(0.2)
    u[:, :, 0] = 1.0
    score = evaluate(v, u, Grid.unit(4), metrics="corr")["corr"]
    assert score.details["valid_pair_fraction"] == pytest.approx(0.5)
    assert score.value == pytest.approx(0.7 * 2 / 3, abs=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_collapsed_prediction_is_penalised(dtype) -> None:
    """The mean field has correlation 0 by rule: the score is the mean |rho_U|, not NaN and not 0."""
    u = (rough() + 7.3).astype(dtype)
    collapsed = np.broadcast_to(u.mean(0), u.shape)
    scores = evaluate(collapsed, u, Grid.unit(8), metrics=["acf", "corr"], resamples=0)
    upper = np.triu_indices(5, 1)
    expected = np.mean([np.abs(np.corrcoef(u[:, 1:, i].T))[upper] for i in range(8)])
    assert scores["acf"].value == pytest.approx(expected, rel=1e-4)
    assert scores["acf"].details["degenerate_fraction"] == 1.0
    assert scores["corr"].value > 0.1


def test_no_valid_pair_is_nan() -> None:
    u = np.broadcast_to(rough()[:1], (5, 6, 8))
    found = evaluate(rough(5), u, Grid.unit(8), metrics=["acf", "corr"])
    assert math.isnan(found["acf"].value) and math.isnan(found["corr"].value)
    assert found["acf"].details["valid_pair_fraction"] == 0


def test_a_nan_makes_both_infinite() -> None:
    u, v = rough(), rough(seed=1)
    v[3, 2, 1] = np.nan
    scores = evaluate(v, u, Grid.unit(8), metrics=["acf", "corr"])
    assert scores["acf"].value == scores["corr"].value == math.inf
    assert scores.counts["nonfinite_samples"] == 1


def weighted(f: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Correlation matrix of columns ``(N, columns)`` under sample weights of sum 1."""
    away = f - w @ f
    covariance = (w[:, None] * away).T @ away
    size = np.sqrt(np.diag(covariance))
    return covariance / np.outer(size, size)


def test_pseudo_values_are_the_derivative_in_the_weight_of_a_sample() -> None:
    """samples_n = value + d/d eps of the value under weights (1 - eps) / N + eps on sample n."""
    n, eps = 30, 1e-6
    u = rough(n)
    v = 0.7 * u + 0.6 * rough(n, seed=1)
    scores = evaluate(v, u, Grid.unit(8), metrics=["acf", "corr"])
    columns = {"acf": [(v[:, 1:, i], u[:, 1:, i]) for i in range(8)], "corr": [(v[:, t], u[:, t]) for t in range(1, 6)]}
    for name, blocks in columns.items():
        upper = np.triu_indices(blocks[0][0].shape[1], 1)

        def theta(w: np.ndarray, blocks=blocks, upper=upper) -> float:
            return float(np.mean([np.abs(weighted(a, w) - weighted(b, w))[upper] for a, b in blocks]))

        flat = np.full(n, 1 / n)
        slopes = [(theta((1 - eps) * flat + eps * np.eye(n)[k]) - theta(flat)) / eps for k in range(n)]
        score = scores[name]
        assert score.samples - score.value == pytest.approx(slopes, abs=1e-3)
        assert np.std(slopes) > 0.01
        assert score.samples.mean() == pytest.approx(score.value, rel=1e-5)
        assert score.interval.method == "bca-linear" and score.interval.low < score.value < score.interval.high


def test_many_points_are_scored_on_a_seeded_subset() -> None:
    u = rough(points=64)
    v = 0.7 * u + 0.6 * rough(points=64, seed=1)
    grid = Grid.unit(64)
    few = CrossCorrelation(max_points=32, subset=32)
    again, other = CrossCorrelation(max_points=32, subset=32), CrossCorrelation(max_points=32, subset=32, seed=1)
    scores = evaluate(v, u, grid, metrics=["corr", few, other], resamples=0)
    assert scores[few.label].details["points"] == 32 and scores[few.label].details["all_points"] == 64
    assert scores["corr"].details["points"] == 64
    assert evaluate(v, u, grid, metrics=[again], resamples=0)[again.label].value == scores[few.label].value
    assert scores[other.label].value != scores[few.label].value
    assert scores[few.label].value == pytest.approx(scores["corr"].value, rel=0.2)
    assert few.label == "corr(max_points=32,subset=32)"


def test_lag_profile_of_independent_frames_and_of_a_constant_path() -> None:
    white = np.random.default_rng(0).standard_normal((400, 6, 8))
    frozen = np.repeat(white[:, :1], 6, axis=1)
    prediction, truth = lag_profile(Pair(torch.from_numpy(frozen), white, Grid.unit(8)))
    assert prediction == pytest.approx(np.ones(5), abs=1e-5)
    assert truth == pytest.approx([1, 0, 0, 0, 0], abs=4 / math.sqrt(400 * 8))  # 8 points: standard error 0.018
