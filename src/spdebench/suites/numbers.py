"""How hard the problems of the core suite are: `core.csv`, which ``benchmarks/core_search.py --suite`` writes."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib import resources

SAMPLES = 200
"""The number of samples of each problem on which they are measured; the datasets have more."""


@cache
def measured() -> Mapping[str, Mapping[str, float]]:
    """Problem -> the fields of `measure.Difficulty`; a problem that was not measured is absent."""
    text = (resources.files("spdebench.suites") / "core.csv").read_text(encoding="utf-8")
    return {
        row["problem"]: {key: float(value) for key, value in row.items() if key != "problem"}
        for row in csv.DictReader(text.splitlines())
    }
