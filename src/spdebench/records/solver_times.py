"""Times of the solver for many samples at once, noise included; records have its time at batch 100 only.

Measured by `spdebench bench data EQUATION --device cuda` and kept in `solver_times.csv`. `network_times.csv` has the
times of networks as multiples of the solver's, noise not included, as `spdebench findings speed --device cuda` measures
them.
"""

from __future__ import annotations

import csv
import functools
from importlib import resources
from typing import NamedTuple


class LargeBatch(NamedTuple):
    """Milliseconds per sample on a device."""

    device: str
    samples: int
    ms: float


@functools.cache
def large_batches() -> dict[str, LargeBatch]:
    """The measurement of each equation, by its name."""
    rows = _rows("solver_times.csv")
    return {r["equation"]: LargeBatch(r["device"], int(r["samples"]), float(r["ms_per_sample"])) for r in rows}


@functools.cache
def networks_over_solver() -> dict[str, float]:
    """The time of each network on phi41 divided by that of the solver, with large batches on an H200."""
    return {r["model"]: float(r["over_solver"]) for r in _rows("network_times.csv")}


def _rows(name: str) -> list[dict[str, str]]:
    text = (resources.files("spdebench.records") / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
