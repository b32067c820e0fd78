"""Descriptions of problems, and the values by which a reader can filter them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from spdebench.records.summary import MAIN
from spdebench.report.board.problems import Problem
from spdebench.report.board.rows import metrics_of


@dataclass(frozen=True)
class Leaderboard:
    """Problems, and the values to choose them by."""

    problems: Sequence[Problem]

    @cached_property
    def by_interest(self) -> list[Problem]:
        """Problems of a suite first, then others on which a model was trained, then the rest."""
        return sorted(self.problems, key=lambda problem: (not problem.suite, not problem.networks))

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics to choose a column by; the main one is always shown."""
        return [name for name in metrics_of(row for p in self.problems for row in p.rows) if name != MAIN]

    @cached_property
    def common(self) -> list[str]:
        """What holds for every problem that does not say otherwise, where there are several: parts that all have, and
        the fields (n=1200) of most of them where the others have another value of that field."""
        counts = Counter(part for problem in self.problems for part in dict.fromkeys(problem.parts))
        every = len(self.problems)
        return [part for part, count in counts.items() if every > 1 and (count == every or self._usual(part, count))]

    def _usual(self, part: str, count: int) -> bool:
        name = part.partition("=")[0] + "="
        told = (any(other.startswith(name) for other in problem.parts) for problem in self.problems)
        return "=" in part and " " not in part and 2 * count > len(self.problems) and all(told)

    def words(self, problem: Problem) -> str:
        """The properties in which a problem differs from others of its equation, in one line."""
        return ", ".join(part for part in problem.parts if part not in self.common) or ", ".join(problem.parts)

    @cached_property
    def choices(self) -> dict[str, list[str]]:
        """Name of a choice -> its values, where there is more than one."""
        return values_by_name(problem.choices for problem in self.problems)


def values_by_name(choices: Iterable[Mapping[str, str]]) -> dict[str, list[str]]:
    """The values of each name in all of these, sorted, where there is more than one."""
    found: dict[str, set[str]] = {}
    for each in choices:
        for name, value in each.items():
            found.setdefault(name, set()).add(value)
    return {name: sorted(values, key=_by_number) for name, values in found.items() if len(values) > 1}


def _by_number(value: str) -> tuple[float, str]:
    """Numbers by their value, then words."""
    try:
        number = float(value)
    except ValueError:
        return math.inf, value
    return (math.inf if math.isnan(number) else number), value
