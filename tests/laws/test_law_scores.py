"""Scores of laws against closed forms: Gaussian CRPS and energy score, propriety, unbiasedness, invariances.

Statistical bounds are four standard errors of means over independent inputs, with fixed seeds.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.special import eval_genlaguerre, gamma, ndtr

from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.metrics.law import law_scores, skill
from spdebench.metrics.law.terms import interval_ranks

GRID = Grid((6,), (0.0,), (1.0,), "periodic")
FRAMES = 3


def gaussian(n: int, members: int, *, shift: float = 0.0, scale: float = 1.0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, members])
    return shift + scale * rng.standard_normal((n, members, FRAMES, *GRID.points))


def close(score, expected: float, floor: float = 1e-9) -> None:
    """Within four standard errors of the mean over inputs."""
    error = score.samples.std(ddof=1) / math.sqrt(len(score.samples))
    assert abs(score.value - expected) < 4 * error + floor, (score.value, expected, error)


def mean_norm(dim: int, shift: float, scale: float) -> float:
    """E|Z| of Z ~ N(shift (1,..,1), scale^2 I) in ``dim`` dimensions: a Laguerre function."""
    length = dim * shift**2 / scale**2
    return scale * math.sqrt(math.pi / 2) * float(eval_genlaguerre(0.5, dim / 2 - 1, -length / 2))


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (0.7, 1.0), (0.0, 2.0), (-0.4, 0.5)])
def test_gaussian_laws_have_their_closed_forms(shift, scale):
    """X ~ N(shift, scale^2), y ~ N(0, 1): the scores have the mean of the formula."""
    n, m, space = 1500, 6, GRID.points[0]
    found = law_scores(
        gaussian(n, m, shift=shift, scale=scale), gaussian(n, 4, seed=1), GRID, resamples=0, has_t0=False
    )
    apart, own = math.hypot(scale, 1.0), math.sqrt(2) * scale
    length = math.sqrt(1 / space)  # the L2 norm of a unit vector
    between = length * mean_norm(space, shift, apart)
    inner = length * 2 * scale * gamma((space + 1) / 2) / gamma(space / 2)
    true = length * 2 * gamma((space + 1) / 2) / gamma(space / 2)
    close(found["energy_score"], between - inner / 2)
    close(found["energy_distance"], 2 * between - inner - true)
    z = shift / apart
    absolute = apart * (2 * math.exp(-z * z / 2) / math.sqrt(2 * math.pi) + z * (2 * ndtr(z) - 1))
    close(found["crps"], absolute - own / math.sqrt(2 * math.pi))


def test_the_crps_of_many_members_is_the_formula_for_each_truth():
    """CRPS(N(0, 1), y) = y (2 Phi(y) - 1) + 2 phi(y) - 1/sqrt(pi), with the quantiles of the normal law as members."""
    from scipy.special import ndtri

    members = ndtri((np.arange(800) + 0.5) / 800).reshape(1, -1, 1, 1)
    grid = Grid((4,), (0.0,), (1.0,), "periodic")
    y = np.array([-1.5, 0.0, 0.8])
    x = np.broadcast_to(members, (3, 800, 1, 4))
    truth = np.broadcast_to(y[:, None, None, None], (3, 1, 1, 4))
    found = law_scores(x, truth, grid, resamples=0, has_t0=False)["crps"].samples
    exact = y * (2 * ndtr(y) - 1) + 2 * np.exp(-y * y / 2) / math.sqrt(2 * math.pi) - 1 / math.sqrt(math.pi)
    assert found == pytest.approx(exact, abs=3e-3)


def test_the_true_law_wins():
    """Propriety: every wrong law has a larger energy score and CRPS than the true one."""
    n = 400
    truth = gaussian(n, 8, seed=1)
    right = law_scores(gaussian(n, 8), truth, GRID, resamples=0, has_t0=False)
    for shift, scale in ((0.5, 1.0), (0.0, 1.6), (0.0, 0.5)):
        wrong = law_scores(gaussian(n, 8, shift=shift, scale=scale), truth, GRID, resamples=0, has_t0=False)
        for name in ("energy_score", "energy_score_path", "crps"):
            assert wrong[name].value > right[name].value, (name, shift, scale)


def test_the_number_of_members_does_not_bias():
    """Two members give the same mean as twenty, for scores and distances."""
    truth = gaussian(2000, 3, seed=1)
    few = law_scores(gaussian(2000, 2), truth, GRID, resamples=0, has_t0=False)
    many = law_scores(gaussian(2000, 20), truth, GRID, resamples=0, has_t0=False)
    for name in ("energy_score", "energy_score_path", "energy_distance", "crps"):
        gap = few[name].samples - many[name].samples
        assert abs(gap.mean()) < 4 * gap.std(ddof=1) / math.sqrt(len(gap)), name


def test_what_may_not_matter_does_not():
    """Permuted members and shifted space change nothing; scaling the fields scales the scores; nor does the chunk."""
    x, y = gaussian(8, 5, shift=0.3), gaussian(8, 7, seed=1)
    plain = law_scores(x, y, GRID, resamples=0, chunk_bytes=1 << 30)
    order = np.random.default_rng(0).permutation(5)
    for a, b, factor in (
        (x[:, order], y[:, ::-1], 1.0),
        (np.roll(x, 2, 3), np.roll(y, 2, 3), 1.0),
        (3 * x, 3 * y, 3.0),
    ):
        other = law_scores(a, b, GRID, resamples=0)
        for name in ("energy_score", "energy_score_path", "energy_distance_path", "crps"):
            assert other[name].samples == pytest.approx(factor * plain[name].samples, rel=1e-12), name
    small = law_scores(x, y, GRID, resamples=0, chunk_bytes=1)
    for name, score in small.items():
        assert score.value == pytest.approx(plain[name].value, rel=1e-12) and score.details == plain[name].details
    tensors = law_scores(torch.from_numpy(x), torch.from_numpy(y), GRID, resamples=0)
    assert tensors["energy_score"].value == pytest.approx(plain["energy_score"].value, rel=1e-12)


def test_a_point_forecast_is_scored_by_its_distance():
    """One member: the energy score is E|x - y|, the CRPS the mean absolute error; calibration is not defined."""
    x, y = gaussian(6, 1), gaussian(6, 1, seed=1)
    found = law_scores(x, y, GRID, resamples=0)
    gap = (x - y)[:, 0, 1:]
    assert found["energy_score"].samples == pytest.approx(np.sqrt((gap**2).mean(2)).mean(1), rel=1e-12)
    assert found["crps"].samples == pytest.approx(np.abs(gap).mean((1, 2)), rel=1e-12)
    assert set(found.skipped) == {
        *("energy_distance", "energy_distance_path", "std_error"),
        *("coverage_50", "coverage_90", "rank_chi2"),
    }


def test_intervals_cover_as_they_should():
    """A draw of the same law lies between the i-th and j-th of m members with probability (j - i)/(m + 1)."""
    n, m = 600, 19
    found = law_scores(gaussian(n, m), gaussian(n, 2, seed=1), GRID, resamples=0, has_t0=False)
    for name, share in (("coverage_50", 0.5), ("coverage_90", 0.9)):
        i, j = interval_ranks(m, share)
        assert found[name].ideal == pytest.approx((j - i) / (m + 1)) == pytest.approx(share, abs=1e-9)
        close(found[name], found[name].ideal)
    narrow = law_scores(gaussian(n, m, scale=0.5), gaussian(n, 2, seed=1), GRID, resamples=0, has_t0=False)
    assert narrow["coverage_90"].value < 0.7


def test_truths_at_a_dirichlet_end_count_as_inside():
    """All members and truths are 0 at one of 6 points: the coverage exceeds its nominal value by (1 - nominal)/6."""
    x, y = gaussian(600, 19), gaussian(600, 2, seed=1)
    x[..., 0] = y[..., 0] = 0
    found = law_scores(x, y, Grid(GRID.points, GRID.lower, GRID.upper, "dirichlet"), resamples=0, has_t0=False)
    for name in ("coverage_50", "coverage_90"):
        close(found[name], found[name].ideal + (1 - found[name].ideal) / 6)
    assert found["rank_chi2"].details["p_value"] > 0.01


@pytest.mark.parametrize("members", [2, 9, 16])
def test_ranks_are_uniform_for_the_true_law_only(members):
    """p-values of 40 true laws are themselves uniform in the mean; a law with half the spread is found out."""
    p = []
    for seed in range(40):
        x, y = gaussian(130, members, seed=2 * seed), gaussian(130, 1, seed=2 * seed + 1)
        p.append(law_scores(x, y, GRID, resamples=0, seed=seed)["rank_chi2"].details["p_value"])
    assert abs(np.mean(p) - 0.5) < 4 * math.sqrt(1 / 12 / 40)
    narrow = law_scores(0.3 * x, y, GRID, resamples=0)["rank_chi2"]
    assert narrow.details["p_value"] < 1e-3 and sum(narrow.details["histogram"]) == 130
    assert len(narrow.details["histogram"]) == min(13, members + 1)


def test_ties_are_broken_at_random():
    """Members equal to the truth: every rank is equally likely, not always the first."""
    x = np.zeros((600, 12, 2, *GRID.points))
    counts = law_scores(x, x[:, :1], GRID, resamples=0)["rank_chi2"].details
    assert counts["p_value"] > 1e-3 and len(counts["histogram"]) == 13


def test_sliced_distance_of_shifted_laws():
    """Y = X + c: W_2 of every projection is |<c, theta>|; its mean square over directions is c^2 (cell sum theta)^2."""
    x = gaussian(5, 6)
    found = law_scores(x, x + 0.8, GRID, resamples=0)["sliced_w2"].value
    assert 0.5 * 0.8 < found * math.sqrt(1) * math.sqrt(GRID.points[0]) < 1.6 * 0.8
    assert law_scores(x, x[:, ::-1], GRID, resamples=0)["sliced_w2"].value < 1e-12
    doubled = np.repeat(x, 3, axis=1)  # the same law by other numbers of members
    assert law_scores(doubled, x[:, :4], GRID, resamples=0)["sliced_w2"].value == pytest.approx(
        law_scores(x, x[:, :4], GRID, resamples=0)["sliced_w2"].value, rel=1e-12
    )


def test_intervals_and_storage_as_other_scores():
    found = law_scores(gaussian(40, 6), gaussian(40, 6, seed=1), GRID, resamples=200)
    ends = found["energy_score"].interval
    assert ends is not None and ends.low < found["energy_score"].value < ends.high
    again = type(found).from_json(found.to_json())
    assert again.summary() == found.summary() and again["rank_chi2"].details == found["rank_chi2"].details
    assert found.settings["members"] == 6


def test_a_prediction_that_is_not_finite_is_infinitely_bad():
    x, y = gaussian(5, 4), gaussian(5, 4, seed=1)
    x[2, 1, 1, 0] = np.nan
    found = law_scores(x, y, GRID, resamples=0)
    assert found["energy_score"].value == math.inf and found.counts["nonfinite_samples"] == 1
    assert np.isfinite(found["energy_score"].samples).sum() == 4
    with_intervals = law_scores(x, y, GRID)
    assert {score.value for score in with_intervals.values()} == {math.inf}
    assert all(score.interval is None for score in with_intervals.values())
    assert with_intervals["rank_chi2"].details["p_value"] == 0
    y[0] = np.inf
    with pytest.raises(UserError, match="the truth is not finite"):
        law_scores(gaussian(5, 4), y, GRID)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ((4, 3, 6), (4, 3, 6), "expected members of fields"),
        ((4, 2, 3, 6), (5, 2, 3, 6), "only the number of members may differ"),
        ((4, 2, 3, 8), (4, 2, 3, 8), "pass its grid"),
        ((2, 2, 3, 6), (2, 2, 3, 6), "at least 3 inputs"),
        ((4, 2, 1, 6), (4, 2, 1, 6), "only the frame t_0"),
    ],
)
def test_wrong_shapes_are_one_line(x, y, message):
    with pytest.raises(UserError, match=message):
        law_scores(np.zeros(x), np.zeros(y), GRID)


def test_skill_is_zero_for_the_climatology_and_one_for_the_law():
    assert skill(2.0, 2.0, 1.0) == 0 and skill(2.0, 1.0, 1.0) == 1 and skill(2.0, 3.0, 1.0) == -1
    with pytest.raises(UserError, match="true law has a smaller score"):
        skill(1.0, 0.5, 1.0)


def test_an_independent_implementation_agrees():
    """The package scoringrules has its own fair CRPS and energy score."""
    oracle = pytest.importorskip("scoringrules")
    x, y = gaussian(5, 7, shift=0.3), gaussian(5, 1, seed=1)
    found = law_scores(x, y, GRID, resamples=0, has_t0=False)
    crps = oracle.crps_ensemble(y[:, 0], x, m_axis=1, estimator="fair")
    assert found["crps"].samples == pytest.approx(crps.mean((1, 2)), rel=1e-12)
    energy = [oracle.es_ensemble(y[:, 0, t], x[:, :, t], m_axis=1, v_axis=2, estimator="fair") for t in range(FRAMES)]
    expected = np.mean(energy, axis=0) / math.sqrt(GRID.points[0])
    assert found["energy_score"].samples == pytest.approx(expected, rel=1e-12)
