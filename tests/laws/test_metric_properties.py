"""What holds for any arrays: 1 to 3 dimensions, few samples, constant columns, fixed initial data."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spdebench.grids import Grid
from spdebench.metrics import METRICS, evaluate

LOGARITHMIC = {"spectrum", "lp_slope", "structure", "structure_time"}  # in decades or octaves


@st.composite
def problems(draw) -> tuple[np.ndarray, np.ndarray, Grid]:
    """Prediction, truth, grid. Some columns of the truth are constant over samples; t_0 may be the same for all."""
    dim = draw(st.integers(1, 3))
    points = tuple(draw(st.integers(4, 7)) for _ in range(dim))
    grid = Grid.unit(points, dim, draw(st.sampled_from(["periodic", "dirichlet"])))
    n, frames = draw(st.integers(3, 7)), draw(st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    u = rng.standard_normal((n, frames, *points)) * 10.0 ** draw(st.integers(-3, 3)) + draw(st.sampled_from([0.0, 2.0]))
    if draw(st.booleans()):
        u[:, 0] = u[:1, 0]
    if draw(st.booleans()):
        u.reshape(n, frames, -1)[..., : draw(st.integers(1, 2))] = 0.7
    v = u + draw(st.sampled_from([0.01, 1.0])) * u.std() * rng.standard_normal(u.shape)
    kind = np.float32 if draw(st.booleans()) else np.float64
    return v.astype(kind), u.astype(kind), grid


@given(problems())
@settings(max_examples=40, deadline=None)
def test_a_perfect_prediction_scores_the_ideal(problem) -> None:
    _, u, grid = problem
    for name, score in evaluate(u, u, grid, metrics="all", resamples=0).items():
        if name != "boundary":  # random data do not vanish at a Dirichlet boundary: that is what it measures
            assert abs(score.value - score.ideal) < 1e-5, name


@given(problems())
@settings(max_examples=40, deadline=None)
def test_scores_of_finite_fields_are_numbers_in_their_range(problem) -> None:
    v, u, grid = problem
    scores = evaluate(v, u, grid, metrics="all", resamples=0)
    assert scores.counts == {"samples": len(u), "nonfinite_samples": 0}
    for name, score in scores.items():
        assert score.value >= 0, name  # so not NaN: the truth varies somewhere
        assert score.curve is None or len(score.curve) == u.shape[1] - 1
    for name in {"acf", "corr"} & set(scores):
        assert scores[name].value <= 2
        assert 0 < scores[name].details["valid_pair_fraction"] <= 1


@given(problems(), st.sampled_from([1e-6, 3.0, 1e5]))
@settings(max_examples=25, deadline=None)
def test_units_do_not_matter_to_relative_scores(problem, unit: float) -> None:
    v, u, grid = (f.astype(np.float64) if isinstance(f, np.ndarray) else f for f in problem)
    names = ["rel_l2", "rel_l1", "nrmse", "w12", "spectrum", "moment_std", "std_ratio", "sigw1_std"]
    if u.shape[1] > 2:
        names += ["acf", "corr"]
    before, after = (evaluate(c * v, c * u, grid, metrics=names, resamples=0).summary() for c in (1.0, unit))
    for name in names:
        rounding = 5e-5 if name in LOGARITHMIC else 1e-6  # of float32: about 1e-7 max|u|/spread, here 2e-5
        assert abs(after[name] - before[name]) <= 2e-4 * abs(before[name]) + rounding, name


@given(problems())
@settings(max_examples=25, deadline=None)
def test_twice_the_same_samples_are_the_same_law(problem) -> None:
    """Empirical laws do not change when every sample is counted twice; nor do means over samples."""
    v, u, grid = problem
    once = evaluate(v, u, grid, metrics="all", resamples=0).summary()
    twice = evaluate(np.concatenate([v, v]), np.concatenate([u, u]), grid, metrics="all", resamples=0).summary()
    for name, value in once.items():
        assert abs(twice[name] - value) <= 2e-4 * abs(value) + 1e-6, name


@given(problems())
@settings(max_examples=15, deadline=None)
def test_a_rotation_of_a_periodic_box_changes_nothing(problem) -> None:
    v, u, grid = problem
    if not grid.periodic:
        return
    turned = [np.roll(f, 1, axis=2) for f in (v, u)]
    names = set(METRICS) - {"boundary"}
    before, after = (evaluate(*f, grid, metrics="all", resamples=0).summary() for f in ((v, u), turned))
    for name in names & set(before):
        rounding = 5e-5 if name in LOGARITHMIC else 1e-6  # of float32: about 1e-7 max|u|/spread, here 2e-5
        assert abs(after[name] - before[name]) <= 2e-4 * abs(before[name]) + rounding, name
