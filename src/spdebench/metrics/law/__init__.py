"""Scores of predicted laws: an ensemble of fields for each input against members of the true conditional law."""

from spdebench.metrics.law.evaluate import law_scores, skill

__all__ = ["law_scores", "skill"]
