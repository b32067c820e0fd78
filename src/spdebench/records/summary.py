"""Statistics over runs (mean and s.d. over seeds, ranks, paired p-values), and numbers as text.

Tables, the results page, README's headline, figures and the site all take their numbers from here.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from spdebench.errors import UserError
from spdebench.metrics import LAW_METRICS, METRICS, Scores, compare
from spdebench.metrics.scores import Score
from spdebench.records.record import Record
from spdebench.tasks.floor import AT_FLOOR

K = TypeVar("K")
MAIN = "rel_l2"
"""The metric by which models are ordered."""
SKILL = "skill"
"""A score of laws that is computed from the energy scores of three records (`metrics.skill`) and never stored."""
MISSING = "-"
"""The text that is shown for a missing number."""


# --- numbers ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class SeedMean:
    """Mean and standard deviation over training seeds; ``std`` is None for one seed or values that are not finite."""

    values: tuple[float, ...]
    mean: float
    std: float | None

    @property
    def count(self) -> int:
        return len(self.values)


def mean_over_seeds(values: Iterable[float | None]) -> SeedMean | None:
    """Mean and s.d. of the values that are not None; None if there are none."""
    known = tuple(v for v in values if v is not None)
    if not known:
        return None
    spread = len(known) > 1 and all(map(math.isfinite, known))
    return SeedMean(known, _statistic(statistics.fmean, known), _statistic(statistics.stdev, known) if spread else None)


def _statistic(function: Callable[[Sequence[float]], float], values: Sequence[float]) -> float:
    """The statistic of the values; NaN if they are too large for it or contain infinities that cancel."""
    try:
        return function(values)
    except (OverflowError, ValueError):
        return math.nan


def median(values: Iterable[float | None]) -> float | None:
    """The median of the values that are not None."""
    known = [v for v in values if v is not None]
    return statistics.median(known) if known else None


def mean_samples(records: Sequence[Record], metric: str, part: str) -> np.ndarray | None:
    """A metric of each test sample, averaged over the runs; None unless all of them have it for the same samples."""
    found = [scored.samples.get(metric) for r in records if (scored := r.part(part)) is not None]
    rows = [samples for samples in found if samples]
    if not rows or len(rows) != len(records) or len({len(r) for r in rows}) != 1:
        return None
    mean: np.ndarray = np.mean(np.array(rows), axis=0)
    return mean


def ideal(metric: str) -> float:
    """The score of a perfect prediction: 0 for errors, times and unknown metrics, 1 for ratios and skill. For scores of
    laws it is the score of the true law, or 0 if that depends on the law.
    """
    name = metric.partition("(")[0]
    if name == SKILL:
        return 1.0
    if name in LAW_METRICS:
        return LAW_METRICS[name].ideal
    return METRICS[name].ideal if name in METRICS else 0.0


def gap(mean: float, metric: str) -> float:
    """Distance of a score from the ideal one."""
    return abs(mean - ideal(metric))


def ranked(means: Mapping[K, float | None], metric: str) -> list[K]:
    """The keys with a finite mean, the best first."""
    finite = {key: mean for key, mean in means.items() if mean is not None and math.isfinite(mean)}
    return sorted(finite, key=lambda key: gap(finite[key], metric))


def at_floor(mean: float | None, floor: float | None) -> bool:
    """Whether an error lies within a factor 1.2 of the floor, so that it cannot be improved."""
    return mean is not None and floor is not None and mean <= AT_FLOOR * floor


def leaders(means: Mapping[K, float | None], metric: str, floor: float | None = None) -> list[K]:
    """The best key; if its error in the main metric is at the floor, all keys whose error is at the floor."""
    order = ranked(means, metric)
    if metric != MAIN or not order or not at_floor(means[order[0]], floor):
        return order[:1]
    return [key for key in order if at_floor(means[key], floor)]


def ratio(mean: float | None, published: float | None) -> float | None:
    """Our mean divided by the published number; None if one is missing."""
    return None if mean is None or not published else mean / published


def p_value(first: np.ndarray | None, second: np.ndarray | None, metric: str) -> float | None:
    """Bootstrap p-value of the difference of two means, paired over test samples; None if it cannot be computed."""
    if first is None or second is None or len(first) != len(second):
        return None
    return _compared(tuple(first.tolist()), tuple(second.tolist()), metric)


@functools.lru_cache(maxsize=4096)
def _compared(first: tuple[float, ...], second: tuple[float, ...], metric: str) -> float | None:
    """`p_value` of tuples, whose results are kept."""
    if not all(any(map(math.isfinite, samples)) for samples in (first, second)):
        return None
    try:
        return compare({"first": _scores(first, metric), "second": _scores(second, metric)}, metric)[0].bootstrap
    except UserError:  # too few samples, or values that are not finite
        return None


def _scores(samples: tuple[float, ...], metric: str) -> Scores:
    """Scores that hold one metric with these values per sample."""
    array = np.array(samples)
    score = Score(metric, float(np.nanmean(array)), "samplewise", samples=array)
    return Scores({metric: score}, {"samples": len(array)}, None, {})


# --- as text ------------------------------------------------------------------------------------------------------
def number(value: float | None) -> str:
    """A number with three digits: 0.00312, 12.1, 3.1e-07."""
    if value is None:
        return MISSING
    if not math.isfinite(value):
        return str(value)
    if value == 0 or 1e-4 <= abs(value) < 1e4:
        digits = 2 if value == 0 else max(0, 2 - math.floor(math.log10(abs(value))))
        return f"{value:.{digits}f}"
    return f"{value:.1e}"


def one_digit(value: float) -> str:
    """A number with one digit, for standard deviations: 2e-5."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def mean_and_std(mean: float | None, std: float | None) -> str:
    """Mean and standard deviation as text: 0.0973±4e-3."""
    return number(mean) + ("" if std is None else f"±{one_digit(std)}")


def count(value: int | None) -> str:
    """A number of parameters with three digits: 3.28M for 3283457; empty if it is not known."""
    if not value:
        return ""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= 0.9995 * size:  # it is rounded to one of these units
            return f"{value / size:.3g}{unit}"
    return str(value)


def rough(value: float, digits: int = 2) -> str:
    """A number with two digits, for measured times: 0.031, 7.5, 620."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    return f"{float(f'{value:.{digits - 1}e}'):.10g}"


def probability(p: float) -> str:
    return "p<0.001" if p < 1e-3 else f"p={p:.2g}"
