"""Pointwise and Sobolev errors by closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spdebench.grids import Grid
from spdebench.metrics import evaluate
from spdebench.metrics.pointwise import RelativeLp
from spdebench.metrics.sobolev import Sobolev


def value(v, u, grid: Grid, metric, **options) -> float:
    found = evaluate(v, u, grid, metrics=[metric], resamples=0, **options)
    return next(iter(found.summary().values()))


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def waves(grid: Grid, k: int, amplitudes: np.ndarray, frames: int) -> np.ndarray:
    """amplitude_n times a sine of k half-periods (Dirichlet) or k periods along every axis; constant in time."""
    turn = 2 * math.pi if grid.periodic else math.pi
    field = math.prod(np.sin(turn * k * m.numpy() / L) for m, L in zip(grid.mesh(), grid.lengths, strict=True))
    return amplitudes.reshape(-1, *[1] * (1 + grid.dim)) * np.broadcast_to(field, (1, frames, *grid.points))


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_relative_error_of_a_multiple(p: float) -> None:
    u = noise(5, 4, 8)
    factors = np.array([1.1, 0.9, 1.2, 1.0, 0.5])[:, None, None]
    assert value(factors * u, u, Grid.unit(8), RelativeLp(p=p)) == pytest.approx(0.18, rel=1e-12)


def test_per_sample_values_pooled_value_and_curve() -> None:
    u = np.ones((3, 4, 8))
    u[2] = 3.0
    v = u.copy()
    v[0, 2:] += 0.5  # sample 0 is wrong in the last two of the three scored frames
    score = evaluate(v, u, Grid.unit(8), metrics="rel_l2")["rel_l2"]
    assert score.samples == pytest.approx([math.sqrt(2 / 3) * 0.5, 0, 0])
    assert score.value == pytest.approx(score.samples.mean())
    assert score.curve == pytest.approx([0, 0.5 / 3, 0.5 / 3])
    assert score.details["pooled"] == pytest.approx(math.sqrt(2 * 0.25 / (3 + 3 + 27)))


def test_absolute_error_is_physical_and_the_papers_is_not() -> None:
    grid = Grid((8,), (0.0,), (2.0,))
    u = noise(4, 6, 8)
    v = u + 0.5
    times = np.linspace(0, 3, 6)
    assert value(v, u, grid, "l2", times=times) == pytest.approx(0.5 * math.sqrt(2 * 3))
    assert value(v, u, grid, "l1", times=times) == pytest.approx(0.5 * 2 * 3)
    assert value(v, u, grid, "l2_paper", times=times) == pytest.approx(0.5 * math.sqrt(8 * 5))
    paper = value(v, u, grid, "l2", times=times) * math.sqrt(8 * 5 / (2 * 3))
    assert paper == pytest.approx(value(v, u, grid, "l2_paper"))


def test_squares_are_means_over_the_whole_set() -> None:
    u = noise(4, 3, 8)
    offsets = np.array([0.0, 1.0, 2.0, 3.0])[:, None, None]
    scores = evaluate(u + offsets, u, Grid.unit(8), metrics=["mse", "rmse"])
    assert scores["mse"].value == pytest.approx(3.5)
    assert scores["rmse"].value == pytest.approx(math.sqrt(3.5))  # not the mean of the roots, 1.5
    assert scores["rmse"].samples == pytest.approx([0, 1, 2, 3])
    assert scores["rmse"].curve == pytest.approx(np.full(2, math.sqrt(3.5)))


def test_the_mean_field_has_nrmse_one() -> None:
    u = noise(30, 5, 8) + np.linspace(0, 9, 8)
    mean = np.broadcast_to(u.mean(0), u.shape)
    assert value(mean, u, Grid.unit(8), "nrmse") == pytest.approx(1.0, rel=1e-12)
    flat = np.broadcast_to(u[:1], u.shape)
    assert math.isnan(value(flat + 1, flat, Grid.unit(8), "nrmse"))


def test_a_vanishing_sample_is_excluded_and_counted() -> None:
    u = noise(4, 3, 8)
    u[1] = 0
    score = evaluate(1.5 * u, u, Grid.unit(8), metrics="rel_l2")["rel_l2"]
    assert score.value == pytest.approx(0.5)
    assert score.details["zero_norm_samples"] == 1 and math.isnan(score.samples[1])
    nothing = np.zeros_like(u)
    assert math.isnan(value(nothing + 1, nothing, Grid.unit(8), "rel_l2"))


def test_a_prediction_that_is_not_finite_gives_inf_and_a_count() -> None:
    u = noise(5, 6, 8)
    v = u + 0.1
    v[3, 4, 2] = np.nan
    names = ["rel_l2", "l2", "l2_paper", "mse", "rmse", "nrmse", "w12", "w12_abs"]
    scores = evaluate(v, u, Grid.unit(8), metrics=names)
    assert scores.counts["nonfinite_samples"] == 1
    for score in scores.values():
        assert score.value == math.inf and score.interval is None, score.metric
        assert np.isinf(score.samples).tolist() == [False, False, False, True, False], score.metric
        assert np.isinf(score.curve).tolist() == [False, False, False, True, False], score.metric  # frames t_1..t_5


@pytest.mark.parametrize(
    "grid",
    [Grid.unit(16), Grid((16,), (0.0,), (3.0,)), Grid.unit(16, boundary="dirichlet"), Grid.unit((8, 10), 2),
     Grid.unit((8, 6), 2, "dirichlet"), Grid.unit((6, 8, 10), 3)],
)  # fmt: skip
def test_sobolev_error_of_a_pure_mode(grid: Grid) -> None:
    """e = c sin(2 k x), U = sin(k x): the ratio of (1 + |kappa|^2)^{1/2}, every axis counted."""
    u = waves(grid, 1, np.array([1.0, 2.0, 3.0]), 4)
    v = u + waves(grid, 2, np.array([0.1, 0.2, 0.3]), 4)
    unit = (2 if grid.periodic else 1) * math.pi
    slope = sum((unit / length) ** 2 for length in grid.lengths)
    score = evaluate(v, u, grid, metrics="w12", resamples=0)["w12"]
    assert score.value == pytest.approx(0.1 * math.sqrt((1 + 4 * slope) / (1 + slope)), rel=1e-10)
    assert score.details["seminorm"] == pytest.approx(0.2, rel=1e-10)
    assert score.curve == pytest.approx(np.full(3, score.value))


def test_the_papers_sobolev_error_has_integer_wave_numbers() -> None:
    grid = Grid((16,), (0.0,), (3.0,))
    u = waves(grid, 1, np.ones(3), 3)
    v = u + waves(grid, 3, np.full(3, 0.1), 3)
    assert value(v, u, grid, "w12_paper") == pytest.approx(0.1 * math.sqrt(10 / 2), rel=1e-10)
    assert value(v, u, grid, Sobolev(wavenumber="integer")) == pytest.approx(0.1 * math.sqrt(10 / 2), rel=1e-10)
    assert value(v, u, grid, Sobolev(wavenumber="compat")) == pytest.approx(0.1 * math.sqrt(11 / 3), rel=1e-10)


def test_the_paper_takes_the_fourier_transform_of_a_dirichlet_field_too() -> None:
    grid = Grid.unit(16, boundary="dirichlet")
    u, v = noise(3, 4, 16), noise(3, 4, 16, seed=1)
    k = np.fft.fftfreq(16, 1 / 16)
    top, bottom = (((1 + k**2) * np.abs(np.fft.fft(f[:, 1:])) ** 2).sum((1, 2)) for f in (v - u, u))
    assert value(v, u, grid, "w12_paper") == pytest.approx(np.sqrt(top / bottom).mean(), rel=1e-10)


@pytest.mark.parametrize("boundary", ["periodic", "dirichlet"])
@pytest.mark.parametrize("dim", [1, 2])
def test_refinement_leaves_absolute_norms_of_a_smooth_error_unchanged(boundary, dim: int) -> None:
    """sin on the unit box: ||e||_2 = c 2^{-d/2}, |e|_{H1}^2 = |kappa|^2 ||e||^2, at every resolution."""
    kappa = (2 if boundary == "periodic" else 1) * math.pi
    for points in (8, 16, 32):
        grid = Grid.unit(points, dim, boundary)
        u = noise(3, 5, *grid.points)
        v = u + waves(grid, 1, np.full(3, 0.7), 5)
        size = 0.7 * 2 ** (-dim / 2)
        assert value(v, u, grid, "l2") == pytest.approx(size, rel=1e-10)
        assert value(v, u, grid, "w12_abs") == pytest.approx(size * math.sqrt(1 + dim * kappa**2), rel=1e-10)


def test_three_dimensions_have_no_compat_form() -> None:
    u = noise(3, 3, 4, 4, 4)
    with pytest.raises(Exception, match="wavenumber=integer"):
        value(u, u, Grid.unit(4, 3), Sobolev(wavenumber="compat"))


def test_the_error_at_the_start_is_reported_separately() -> None:
    u = noise(4, 3, 8)
    v = u.copy()
    v[:, 0] *= 1.25
    scores = evaluate(v, u, Grid.unit(8), metrics=["rel_l2", "w12", "acf", "sigw1"])
    assert scores.ic_error == pytest.approx(0.25)
    assert set(scores.summary().values()) == {0.0}
    assert evaluate(v[:, 1:], u[:, 1:], Grid.unit(8), metrics="rel_l2", has_t0=False).ic_error is None
