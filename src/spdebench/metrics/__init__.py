"""Metrics compare predicted with true solutions, sample by sample or in law, with confidence intervals."""

from spdebench.metrics.base import METRICS, Measurement, Metric
from spdebench.metrics.bootstrap import Interval
from spdebench.metrics.causality import CausalityGap, causality_gap
from spdebench.metrics.compare import Comparison, SeedSummary, compare, holm, over_seeds
from spdebench.metrics.correlation import lag_profile
from spdebench.metrics.evaluate import DEFAULT, PAPER, evaluate
from spdebench.metrics.fields import Pair
from spdebench.metrics.floors import Floors, floors
from spdebench.metrics.law import LAW_METRICS, law_scores, skill
from spdebench.metrics.moments import moment_maps
from spdebench.metrics.scores import Score, Scores
from spdebench.metrics.titles import metric_title

__all__ = [
    "DEFAULT",
    "LAW_METRICS",
    "METRICS",
    "PAPER",
    "CausalityGap",
    "Comparison",
    "Floors",
    "Interval",
    "Measurement",
    "Metric",
    "Pair",
    "Score",
    "Scores",
    "SeedSummary",
    "causality_gap",
    "compare",
    "evaluate",
    "floors",
    "holm",
    "lag_profile",
    "law_scores",
    "metric_title",
    "moment_maps",
    "over_seeds",
    "skill",
]
