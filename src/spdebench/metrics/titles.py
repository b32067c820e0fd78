"""The titles of all metrics, those of paths and those of laws, for figures and pages."""

from __future__ import annotations

from spdebench.metrics.base import METRICS
from spdebench.metrics.law import LAW_METRICS


def metric_title(label: str) -> str:
    """``rel_l2`` -> ``relative L2``, ``sigw1(depth=3)`` -> ``Sig-W1 (depth=3)``; a name without a title stays."""
    name, bracket, options = label.partition("(")
    if name in LAW_METRICS:
        return LAW_METRICS[name].title
    return f"{METRICS[name].title} {bracket}{options}".rstrip() if name in METRICS else label
