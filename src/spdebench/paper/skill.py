"""Skill of predicted laws, computed from the energy scores of three records and never stored.

    skill = (climatology - model) / (climatology - independent ensemble)

0 is the law that does not use its input, 1 the true law. All three are of the same problem and the same seen noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spdebench.metrics import skill
from spdebench.metrics.bootstrap import Interval, interval
from spdebench.records.record import TEST
from spdebench.records.summary import SKILL, mean_over_seeds
from spdebench.training.law_rows import INDEPENDENT_LAW

if TYPE_CHECKING:
    from spdebench.paper.filled import Entry

ENERGY_SCORE, CLIMATOLOGY = "energy_score", "climatology"
"""The score from which skill is computed, and the model whose skill is 0."""
LEAST_GAP = 0.01
"""Skill is computed only if the two references differ by at least this fraction of the score of the climatology."""
NO_SKILL = "none"
"""Shown for finished runs where there is no skill, because climatology and true law are nearly the same."""


def with_skill(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries; in those whose metric is skill, the energy score is replaced by the skill.

    The references are rows of the same group. If the ensemble has no row, the true law is a point, which scores 0.
    There is no skill until both references have a finite score, nor if they differ by less than 1 %: then no law can be
    clearly better than the climatology.
    """
    own = (e for e in entries if e.cell.metric == ENERGY_SCORE and e.cell.part == TEST)
    score = {(e.cell.group, e.cell.model): e for e in own}

    def changed(entry: Entry) -> Entry:
        climate, ensemble = (score.get((entry.cell.group, model)) for model in (CLIMATOLOGY, INDEPENDENT_LAW))
        ends = None if climate is None else climate.mean, 0.0 if ensemble is None else ensemble.mean
        summary = mean_over_seeds(_skill(ends, value) for value in entry.values)
        known = all(end is not None and math.isfinite(end) for end in ends)
        none = summary is None and bool(entry.values) and known
        return replace(entry, summary=summary, samples=None, no_number=NO_SKILL if none else "")

    return tuple(changed(e) if e.cell.metric == SKILL else e for e in entries)


def skill_interval(climatology: Entry, model: Entry, independent: Entry | None) -> Interval | None:
    """The 95 % interval of a skill over test inputs, from energy scores; None where a score is not known by input.

    The three scores of an input are drawn together. Without an ensemble the true law is a point, which scores 0.
    """
    known = climatology.samples, model.samples, np.zeros(1) if independent is None else independent.samples
    climate, own, ensemble = known
    if climate is None or own is None or ensemble is None or len(climate) != len(own):
        return None
    gained, gap = climate - own, climate - np.broadcast_to(ensemble, climate.shape)

    def statistic(weights: np.ndarray) -> np.ndarray:
        out: np.ndarray = (weights @ gained) / (weights @ gap)
        return out

    return interval(statistic, len(gained))


def _skill(ends: tuple[float | None, float | None], value: float) -> float | None:
    """The skill of an energy score between the two references; None if it is not defined."""
    climate, ensemble = ends
    if climate is None or ensemble is None or not math.isfinite(climate - ensemble):
        return None
    if climate - ensemble <= LEAST_GAP * climate:
        return None
    return skill(climate, value, ensemble)
