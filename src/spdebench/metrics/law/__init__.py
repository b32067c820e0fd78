"""Scores of predicted laws: an ensemble of fields for each input against members of the true conditional law."""

from spdebench.metrics.law.evaluate import law_scores, skill
from spdebench.metrics.law.names import LAW_METRICS, LawMetric

__all__ = ["LAW_METRICS", "LawMetric", "law_scores", "skill"]
