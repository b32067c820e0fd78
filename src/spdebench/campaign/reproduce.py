"""Compare runs that were made again with their records.

    difference   |reproduced - recorded| / recorded, 0 if the two differ by at most ROUNDING: the largest over the test
                 part and the shifts, of the relative L2 error and the energy score
    same         the difference is at most SAME
    close        it is at most `TOLERANCE`, as for the second run of a submission
    different    it is larger

A model without random training should give the same scores with the same code, also on another processor. A network
gives the same scores on the same device with the same versions; on another device rounding grows during training.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from spdebench.challenge.submission import TOLERANCE
from spdebench.records import Record
from spdebench.records.record import TEST

COMPARED = ("rel_l2", "energy_score")
"""The metrics by which tables order models."""
ROUNDING = 1e-7
"""Two errors that differ by at most this differ by rounding of stored float32 values."""
SAME = 1e-6

Verdict = Literal["same", "close", "different"]


@dataclass(frozen=True)
class Reproduction:
    """The score of a run that differs most from that of its record."""

    name: str
    part: str
    metric: str
    recorded: float
    reproduced: float
    commit: str | None = None  # the version of the code that made the record

    @property
    def difference(self) -> float:
        """The relative difference; inf if only one of the two is finite."""
        if not math.isfinite(self.recorded) or not math.isfinite(self.reproduced):
            return 0.0 if math.isfinite(self.recorded) == math.isfinite(self.reproduced) else math.inf
        gap = abs(self.reproduced - self.recorded)
        return 0.0 if gap <= ROUNDING else gap / abs(self.recorded) if self.recorded else math.inf

    @property
    def verdict(self) -> Verdict:
        return "same" if self.difference <= SAME else "close" if self.difference <= TOLERANCE else "different"


def compare_records(recorded: Record, reproduced: Record) -> Reproduction | None:
    """The score that differs most; None if the two have no score in common."""
    found = [
        Reproduction(recorded.name, part, metric, before.value, after.value, recorded.provenance.commit)
        for part in (TEST, *recorded.shifts)
        if (old := recorded.part(part)) is not None and (new := reproduced.part(part)) is not None
        for metric in COMPARED
        if (before := old.scores.get(metric)) is not None and (after := new.scores.get(metric)) is not None
    ]
    return max(found, key=lambda each: each.difference, default=None)
