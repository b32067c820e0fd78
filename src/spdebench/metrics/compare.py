"""Is model A better than model B? Tests on the same test samples, and intervals over training seeds and samples.

- Paired bootstrap: the difference of scores under one resampling of the test set for both models (metrics of laws
  through their pseudo-values, that is, to first order).
- Wilcoxon signed-rank test on per-sample differences (samplewise metrics only; pseudo-values are no observations).
- Holm's step-down correction over all pairs of models.
- Two levels: seeds and samples are crossed (every seed predicts the same test set), so both are resampled
  independently (A. Owen, "The pigeonhole bootstrap", 2007; slightly conservative).
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
    """A against B on one metric: ``difference`` = score of A - score of B with its interval; p-values, Holm-adjusted.

    ``wilcoxon`` is None for a metric of laws. ``excluded`` samples have no value in one of the two.
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
        """The model with the smaller score, if the corrected bootstrap tells them apart at the interval's level."""
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
    """All pairs of models on one metric; every `Scores` must come from the same test set, in the same order."""
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
    x, y = _values(first, a), _values(second, b)
    kept = ~(np.isnan(x) | np.isnan(y))
    for name, values in ((a, x), (b, y)):
        if not np.isfinite(values[kept]).all():
            raise UserError(f"compare: '{first.metric}' of '{name}' is not finite; a broken model cannot be ranked")
    if kept.sum() < 3:
        raise UserError(f"compare: '{a}' and '{b}' share {int(kept.sum())} samples with a value; 3 are needed")
    x, y = x[kept], y[kept]
    n = len(x)
    gap_x, gap_y = reducer(x, first.reduction), reducer(y, second.reduction)
    once, many = np.ones((1, n)), resample_counts(n, resamples, seed)
    difference = float((gap_x(once) - gap_y(once))[0])
    drawn = gap_x(many) - gap_y(many)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    tail = min(np.sum(drawn <= 0), np.sum(drawn >= 0))
    p = min(1.0, 2 * (tail + 1) / (resamples + 1))
    ranks: float | None = None
    if first.kind == "samplewise":
        from scipy import stats  # slow to import, seldom needed

        ranks = float(stats.wilcoxon(x, y).pvalue) if np.any(x != y) else 1.0
    return difference, Interval(float(low), float(high), level, "paired"), float(p), ranks, int((~kept).sum())


def _values(score: Score, name: str) -> np.ndarray:
    if score.samples is None:
        raise UserError(
            f"compare: '{score.metric}' of '{name}' has no per-sample values; evaluate with resamples > 0, or compare "
            "on another metric"
        )
    return score.samples


@dataclass(frozen=True)
class SeedSummary:
    """One model trained with several seeds: the mean score, how it varies over seeds and over samples, both together.

    ``seed_std``: std of the score over seeds. ``sample_error``: standard error from the finite test set.
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
    """The two-level (seed x sample) interval of the mean score over seeds, by resampling both."""
    if len(runs) < 2:
        raise UserError(f"over_seeds: at least 2 training seeds are needed, got {len(runs)}")
    scores = [run[metric] for run in runs]
    tables = [_values(score, f"run {k}") for k, score in enumerate(scores)]
    if len({len(t) for t in tables}) > 1:
        raise UserError("over_seeds: the runs were scored on test sets of different sizes")
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
