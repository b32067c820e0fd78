"""Times of the solver for many samples at once, noise included; records have its time at batch 100 only.

Measured by `spdebench bench data EQUATION --device cuda` and kept in `solver_times.csv`.
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
    """Equation -> its measurement."""
    text = (resources.files("spdebench.records") / "solver_times.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {r["equation"]: LargeBatch(r["device"], int(r["samples"]), float(r["ms_per_sample"])) for r in rows}
