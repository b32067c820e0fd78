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
    """Problems, and the values by which a reader can filter them."""

    problems: Sequence[Problem]

    @cached_property
    def by_interest(self) -> list[Problem]:
        """Problems of a suite first, then others on which a model was trained, then the rest."""
        return sorted(self.problems, key=lambda problem: (not problem.suite, not problem.networks))

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics from which a reader can choose a further column; the main one is always shown."""
        return [name for name in metrics_of(row for p in self.problems for row in p.rows) if name != MAIN]

    @cached_property
    def common(self) -> list[str]:
        """The parts of descriptions that are stated once for several problems.

        These are parts that all problems have, and fields such as n=1200 that most have and the others have with
        another value.
        """
        counts = Counter(part for problem in self.problems for part in dict.fromkeys(problem.parts))
        every = len(self.problems)
        return [part for part, count in counts.items() if every > 1 and (count == every or self._usual(part, count))]

    def _usual(self, part: str, count: int) -> bool:
        """Whether a part is a field that most problems have with this value and all others with another value."""
        name = part.partition("=")[0] + "="
        stated = (any(other.startswith(name) for other in problem.parts) for problem in self.problems)
        return "=" in part and " " not in part and 2 * count > len(self.problems) and all(stated)

    def words(self, problem: Problem) -> str:
        """The properties in which a problem differs from others of its equation, in one line."""
        return ", ".join(part for part in problem.parts if part not in self.common) or ", ".join(problem.parts)

    @cached_property
    def choices(self) -> dict[str, list[str]]:
        """The values of each filter, by its name, if there is more than one."""
        return values_by_name(problem.choices for problem in self.problems)


def values_by_name(choices: Iterable[Mapping[str, str]]) -> dict[str, list[str]]:
    """The values of each name in all of these, sorted; names with a single value are left out."""
    found: dict[str, set[str]] = {}
    for each in choices:
        for name, value in each.items():
            found.setdefault(name, set()).add(value)
    return {name: sorted(values, key=_by_number) for name, values in found.items() if len(values) > 1}


def _by_number(value: str) -> tuple[float, str]:
    """A key that sorts numbers by their value, and words after them."""
    try:
        number = float(value)
    except ValueError:
        return math.inf, value
    return (math.inf if math.isnan(number) else number), value
