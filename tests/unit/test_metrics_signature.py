"""Sig-W1 by closed forms and by the textbook formula, and what each form sees."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from spdebench.grids import Grid
from spdebench.metrics import evaluate
from spdebench.metrics.signature import SignatureW1, StandardisedSignatureW1
from spdebench.signatures import signature, with_time


def ensemble(n: int = 30, frames: int = 7, points: int = 6, seed: int = 0) -> np.ndarray:
    steps = np.random.default_rng(seed).standard_normal((n, frames, points))
    return 1.5 + np.cumsum(steps, axis=1) / math.sqrt(frames)


def textbook(v: np.ndarray, u: np.ndarray, depth: int) -> float:
    """The paper's formula, point by point, in float64."""
    norms = []
    for i in range(v.shape[2]):
        mean_v, mean_u = (signature(with_time(torch.from_numpy(f[:, :, i, None])), depth).mean(0) for f in (v, u))
        norms.append(float((mean_v - mean_u).norm()))
    return float(np.mean(norms))


def value(v, u, metric, points: int = 6, **options) -> float:
    return next(iter(evaluate(v, u, Grid.unit(points), metrics=[metric], resamples=0, **options).summary().values()))


def test_straight_lines_have_a_closed_form() -> None:
    """u = a t, v = b t on [0, 1]: the word w with c value letters differs by (a^c - b^c) / k!."""
    a, b, depth = 1.0, 0.4, 5
    t = np.linspace(0, 1, 6)
    u, v = (np.broadcast_to((slope * t)[None, :, None], (4, 6, 6)).copy() for slope in (a, b))
    square = sum(
        math.comb(k, c) * ((a**c - b**c) / math.factorial(k)) ** 2 for k in range(1, depth + 1) for c in range(k + 1)
    )
    assert value(v, u, "sigw1", has_t0=False) == pytest.approx(math.sqrt(square), rel=1e-6)


@pytest.mark.parametrize("depth", [2, 5])
def test_the_papers_form_is_the_textbook_formula(depth: int) -> None:
    u, v = ensemble(), 0.9 * ensemble() + 0.2 * ensemble(seed=1)
    assert value(v, u, SignatureW1(depth=depth)) == pytest.approx(textbook(v[:, 1:], u[:, 1:], depth), rel=1e-5)


def test_the_standardised_form_is_the_textbook_formula() -> None:
    u, v = ensemble(), 0.9 * ensemble() + 0.2 * ensemble(seed=1)
    mean = u.mean(0)
    unit = np.sqrt(np.mean((u - mean)[:, 1:] ** 2))
    times = torch.cat([torch.zeros(1), torch.linspace(0, 1, 7)]).double()
    norms = []
    for i in range(6):
        means = []
        for f in (v, u):
            flat = torch.from_numpy((f - mean)[:, :, i] / unit)
            path = torch.cat([torch.zeros(len(flat), 1), flat], dim=1)[..., None]
            means.append(signature(with_time(path, times), 4).mean(0))
        norms.append(float((means[0] - means[1]).norm()))
    assert value(v, u, "sigw1_std") == pytest.approx(np.mean(norms), rel=1e-5)


def test_a_constant_offset_is_seen_by_the_standardised_form_only() -> None:
    u = ensemble()
    assert value(u + 0.5, u, "sigw1") < 1e-6
    assert value(u + 0.5, u, "sigw1_std") > 0.5


def test_a_collapsed_prediction_is_penalised() -> None:
    """Half the noise and the mean field: worse than an independent ensemble of the same law."""
    u, other = ensemble(200), ensemble(200, seed=1)
    mean = np.broadcast_to(u.mean(0), u.shape)
    floor, half, collapsed = (value(v, u, "sigw1_std") for v in (other, (mean + u) / 2, mean))
    assert 2 * floor < half < collapsed


def test_the_standardised_form_hardly_depends_on_the_noise_level() -> None:
    mean = np.linspace(0, 1, 7)[None, :, None]
    u, v = ensemble() - 1.5, 0.8 * (ensemble() - 1.5)
    loud, quiet = (value(mean + s * v, mean + s * u, "sigw1_std") for s in (1.0, 0.01))
    assert loud == pytest.approx(quiet, rel=1e-4)
    loud, quiet = (value(mean + s * v, mean + s * u, "sigw1") for s in (1.0, 0.01))
    assert loud > 50 * quiet


def test_compat_is_the_l1_norm_over_batches_of_twenty() -> None:
    u, v = ensemble(50), ensemble(50, seed=1)
    batches = []
    for k in range(0, 50, 20):
        part = [
            [signature(with_time(torch.from_numpy(f[k : k + 20, 1:, i, None])), 5).mean(0) for i in range(6)]
            for f in (v, u)
        ]
        batches.append(np.mean([float((a - b).abs().sum()) for a, b in zip(*part, strict=True)]))
    metric = SignatureW1(compat=True)
    assert value(v, u, metric) == pytest.approx(np.mean(batches), rel=1e-5)
    assert metric.label == "sigw1(compat=True)"


def test_pseudo_values_make_the_value_and_resampling_weighs_samples() -> None:
    u, v = ensemble(), 0.5 * ensemble() + ensemble(seed=1)
    score = evaluate(v, u, Grid.unit(6), metrics="sigw1")["sigw1"]
    assert score.samples.mean() == pytest.approx(score.value, rel=1e-6)
    assert score.details["debiased"] < score.value
    twice = evaluate(np.concatenate([v, v]), np.concatenate([u, u]), Grid.unit(6), metrics="sigw1")["sigw1"]
    assert twice.value == pytest.approx(score.value, rel=1e-5)


def test_the_bias_of_a_norm_is_seen() -> None:
    """Two ensembles of one law are at distance 0: the debiased value and the interval come nearer than the value."""
    u, v = ensemble(100), ensemble(100, seed=1)
    score = evaluate(v, u, Grid.unit(6), metrics="sigw1")["sigw1"]
    assert score.interval.method == "basic" and score.interval.low + score.interval.high < 2 * score.value
    assert score.details["debiased"] < 0.8 * score.value


def test_the_fast_backend_agrees() -> None:
    pytest.importorskip("pysiglib")
    u, v = ensemble(), ensemble(seed=1)
    for metric in (SignatureW1, StandardisedSignatureW1):
        assert value(v, u, metric(backend="pysiglib")) == pytest.approx(value(v, u, metric()), rel=1e-5)


def test_what_cannot_be_scored() -> None:
    u = ensemble()
    with pytest.raises(Exception, match="metric 'sigw1' needs at least 2 scored frames, got 1"):
        value(u[:, :2], u[:, :2], "sigw1")
    frozen = np.broadcast_to(u[:1], u.shape)
    assert math.isnan(value(u, frozen, "sigw1_std"))
    v = u.copy()
    v[0, 0, 0] = np.nan  # at t_0, which only the standardised form reads
    assert value(v, u, "sigw1_std") == math.inf and value(v, u, "sigw1") == 0
    with pytest.raises(Exception, match=r"depth must lie in 1\.\.8, got 0"):
        SignatureW1(depth=0)
