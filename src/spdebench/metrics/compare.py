"""Tests whether one model is better than another, and intervals over training seeds and test samples.

- Paired bootstrap: both models are scored on the same resamples of the test set, and their scores subtracted. Metrics
  that compare laws enter through their pseudo-values, that is, to first order.
- Wilcoxon signed-rank test on per-sample differences; only for samplewise metrics, as pseudo-values are not
  observations.
- Holm's step-down correction over all pairs of models.
- Two-level intervals: every training seed predicts the same test set, so seeds and samples are resampled independently
  (A. Owen, "The pigeonhole bootstrap", 2007; slightly conservative).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spdebench.errors import UserError
from spdebench.metrics.bootstrap import Interval, resample_counts
from spdebench.metrics.scores import Score, Scores, reducer


@dataclass(frozen=True)
class Comparison:
    """Model A against model B on one metric: ``difference`` = score of A - score of B, its interval, and p-values.

    ``*_holm`` are the p-values after Holm's correction. ``wilcoxon`` is None for a metric that compares laws.
    ``excluded`` is the number of samples for which one of the models has no value.
    """

    a: str
    b: str
    metric: str
    difference: float
    interval: Interval
    bootstrap: float
    bootstrap_holm: float
    wilcoxon: float | None
    wilcoxon_holm: float | None
    excluded: int

    @property
    def better(self) -> str | None:
        """The model with the smaller score if the Holm-corrected bootstrap finds a difference at this level."""
        if self.bootstrap_holm > 1 - self.interval.level:
            return None
        return self.a if self.difference < 0 else self.b


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: p_(i) -> max_{j<=i} min(1, (m - j + 1) p_(j)), in the order given."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.minimum(1.0, p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(stepped)
    return [float(value) for value in adjusted]


def compare(
    models: Mapping[str, Scores], metric: str = "rel_l2", *, resamples: int = 5000, level: float = 0.95, seed: int = 0
) -> list[Comparison]:
    """Compare all pairs of models on one metric; all `Scores` must be of the same test samples in the same order."""
    if len(models) < 2:
        raise UserError(f"compare: at least 2 models are needed, got {len(models)}")
    scores = {name: found[metric] for name, found in models.items()}
    sizes = {name: len(_values(score, name)) for name, score in scores.items()}
    if len(set(sizes.values())) > 1:
        raise UserError(f"compare: the models were scored on test sets of different sizes: {sizes}")
    pairs = list(itertools.combinations(scores, 2))
    found = [_pair(scores[a], scores[b], a, b, resamples, level, seed) for a, b in pairs]
    adjusted = holm([f[2] for f in found])
    ranked = [f[3] for f in found if f[3] is not None]
    ranked_holm = iter(holm(ranked))
    out = []
    for (a, b), (difference, ends, p, w, excluded), p_holm in zip(pairs, found, adjusted, strict=True):
        w_holm = None if w is None else next(ranked_holm)
        out.append(Comparison(a, b, metric, difference, ends, p, p_holm, w, w_holm, excluded))
    return out


def _pair(
    first: Score, second: Score, a: str, b: str, resamples: int, level: float, seed: int
) -> tuple[float, Interval, float, float | None, int]:
    """Difference of two models, its interval, p-values of bootstrap and Wilcoxon test, number of excluded samples."""
    x, y = _values(first, a), _values(second, b)
    kept = ~(np.isnan(x) | np.isnan(y))
    for name, values in ((a, x), (b, y)):
        if not np.isfinite(values[kept]).all():
            raise UserError(f"compare: '{first.metric}' of '{name}' is not finite, so it cannot be compared")
    if kept.sum() < 3:
        raise UserError(
            f"compare: '{a}' and '{b}' have {int(kept.sum())} common samples with a value; at least 3 are needed"
        )
    x, y = x[kept], y[kept]
    n = len(x)
    score_x, score_y = reducer(x, first.reduction), reducer(y, second.reduction)
    equal, resampled = np.ones((1, n)), resample_counts(n, resamples, seed)
    difference = float((score_x(equal) - score_y(equal))[0])
    drawn = score_x(resampled) - score_y(resampled)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    tail = min(np.sum(drawn <= 0), np.sum(drawn >= 0))
    p = min(1.0, 2 * (tail + 1) / (resamples + 1))
    ranks: float | None = None
    if first.kind == "samplewise":
        from scipy import stats  # slow to import, rarely needed

        ranks = float(stats.wilcoxon(x, y).pvalue) if np.any(x != y) else 1.0
    return difference, Interval(float(low), float(high), level, "paired"), float(p), ranks, int((~kept).sum())


def _values(score: Score, name: str) -> np.ndarray:
    """The per-sample values of a score."""
    if score.samples is None:
        raise UserError(
            f"compare: '{score.metric}' of '{name}' has no per-sample values; evaluate with resamples > 0, or compare "
            "on another metric"
        )
    return score.samples


@dataclass(frozen=True)
class SeedSummary:
    """The mean score of one model over training seeds, with an interval over seeds and samples together.

    ``seed_std``: std of the score over seeds. ``sample_error``: standard error due to the finite test set.
    """

    metric: str
    value: float
    seeds: int
    seed_std: float
    sample_error: float
    interval: Interval


def over_seeds(
    runs: Sequence[Scores], metric: str = "rel_l2", *, resamples: int = 5000, level: float = 0.95, seed: int = 0
) -> SeedSummary:
    """The mean score over training seeds and its interval, from resampling both seeds and test samples."""
    if len(runs) < 2:
        raise UserError(f"over_seeds: at least 2 training seeds are needed, got {len(runs)}")
    scores = [run[metric] for run in runs]
    tables = [_values(score, f"run {k}") for k, score in enumerate(scores)]
    if len({len(t) for t in tables}) > 1:
        sizes = ", ".join(str(len(t)) for t in tables)
        raise UserError(
            f"over_seeds: the runs must be scored on the same samples; their test sets have {sizes} samples"
        )
    values = np.array([score.value for score in scores])
    if not np.isfinite(values).all():
        raise UserError(f"over_seeds: run {int(np.argmin(np.isfinite(values)))} has a non-finite '{metric}'")
    reduced = [reducer(t, s.reduction) for t, s in zip(tables, scores, strict=True)]
    weights = resample_counts(len(tables[0]), resamples, seed)
    by_sample = np.stack([statistic(weights) for statistic in reduced])  # (seeds, resamples)
    seeds = resample_counts(len(runs), resamples, seed + 1).T / len(runs)
    drawn = np.nansum(by_sample * seeds, axis=0)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return SeedSummary(
        metric=metric,
        value=float(values.mean()),
        seeds=len(runs),
        seed_std=float(values.std(ddof=1)),
        sample_error=float(np.nanstd(by_sample.mean(0), ddof=1)),
        interval=Interval(float(low), float(high), level, "two-level"),
    )
