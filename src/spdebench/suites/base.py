"""The classes of a suite: named problems, each with its dataset and the datasets of its shifts.

A suite is registered by `register_suite`; ``spdebench suite NAME`` prints, makes and verifies it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spdebench.data import DatasetSpec
from spdebench.equations import Equation, equation
from spdebench.errors import unknown
from spdebench.registry import Declarations


@dataclass(frozen=True, kw_only=True)
class Shift:
    """Data that differ from those a model was trained on: the problem with other ``fields``.

    With the problem's seed the noise is the same realisation in all modes that both resolve, and only the rows of the
    problem's test part may be scored; with another seed the noise is new.
    """

    label: str
    fields: Mapping[str, Any]
    n: int = 400
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class SuiteProblem:
    """``n`` samples of an equation with the given fields, all others at their defaults, and its shifts.

    The equation is looked up only when the problem is built, so that a suite can be listed without it.
    """

    name: str
    equation: str
    fields: Mapping[str, Any]
    n: int = 1200
    seed: int = 0
    group: str = ""  # the row of the suite to which the problem belongs
    task: Mapping[str, Any] = field(default_factory=dict)  # fields of the task that the suite sets
    shifts: tuple[Shift, ...] = ()
    why: str = ""

    def build(self) -> Equation:
        return equation(self.equation, **self.fields)

    @property
    def spec(self) -> DatasetSpec:
        return DatasetSpec(equation=self.build(), n=self.n, seed=self.seed)

    def shift_spec(self, shift: Shift) -> DatasetSpec:
        return DatasetSpec(
            equation=equation(self.equation, **{**self.fields, **shift.fields}), n=shift.n, seed=shift.seed
        )

    def datasets(self) -> dict[str, DatasetSpec]:
        """All datasets of the problem by label; its own comes first, with the label ``test``."""
        return {"test": self.spec, **{shift.label: self.shift_spec(shift) for shift in self.shifts}}


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Problems that belong together."""

    name: str
    title: str
    problems: tuple[SuiteProblem, ...]

    def choose(self, only: str = "") -> tuple[SuiteProblem, ...]:
        """The problems whose name or group is ``only``; all of them if it is empty."""
        chosen = tuple(p for p in self.problems if only in ("", p.name, p.group))
        if not chosen:
            names = dict.fromkeys(word for p in self.problems for word in (p.group, p.name) if word)
            raise unknown(f"problem of the suite {self.name}", only, names)
        return chosen


def _builtin() -> None:
    import spdebench.suites  # noqa: F401  (its import declares the package's own suites)


SUITES: Declarations[Suite] = Declarations("suite", "suites", _builtin)


def register_suite(suite: Suite) -> Suite:
    """Add a suite: from then on ``spdebench suite NAME`` knows it."""
    SUITES.add(suite.name, suite)
    return suite
