"""Times of all speed cases; ours and plain alternate, so that both meet the same load of the machine."""

from __future__ import annotations

import importlib
import math
from typing import Any

from spdebench.errors import unknown
from spdebench.timing import threads, timed

CASES: tuple[str, ...] = ("fno", "nspde", "wno", "ncde", "dlr_net", "features", "step", "step-phi41", "step-phi42")


def measure(only: str = "", rounds: int = 5) -> list[dict[str, Any]]:
    """One row per case: the least of ``rounds`` times of a training step in ms, the ratio plain/ours, the target."""
    if only and only not in CASES:
        raise unknown("case", only, CASES)
    rows = []
    for name in CASES:
        if only in ("", name):
            rows.append(_row(name, rounds))
    return rows


def _row(name: str, rounds: int) -> dict[str, Any]:
    module, _, data = name.partition("-")
    case = importlib.import_module(f"speed.models.{module}").case(*([data] if data else []))
    ours = plain = math.inf
    with threads(case.threads):
        for _ in range(1 if case.once else rounds + 1):  # the first round is the warm-up
            ours, plain = min(ours, timed(case.ours)[1]), min(plain, timed(case.plain)[1])
    return {
        "case": case.name,
        "ours_ms": 1e3 * ours,
        "plain_ms": 1e3 * plain,
        "ratio": plain / ours,
        "target": case.target,
        "note": case.note,
    }
