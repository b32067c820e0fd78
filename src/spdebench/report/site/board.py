"""Runs as rows of a leaderboard: runs that differ only in their seed are one row, mean ± s.d.

A *problem* is datasets and task: what scores can be compared on. The best of a problem is, for each metric, the row
whose mean is nearest to the metric's ideal value; the solver is shown, but does not compete.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from spdebench.metrics import DEFAULT
from spdebench.records.summary import MAIN, SeedMean, gap, mean_over_seeds, ranked
from spdebench.report.site.formatting import fingerprint, mapping, real, several, text
from spdebench.report.site.shown import ShownRun
from spdebench.tasks import TaskSpec

ROWS = 250  # rows of a board on one page: about 250 kB


@dataclass
class BoardRow:
    """Runs that differ in their seed only."""

    runs: list[ShownRun]
    variant: str = ""  # what tells it from other rows of the same model and problem
    best: set[str] = field(default_factory=set)  # metrics on which it is the best of its problem

    @property
    def first(self) -> ShownRun:
        return self.runs[0]

    @cached_property
    def scores(self) -> dict[str, SeedMean]:
        names = dict.fromkeys(name for run in self.runs for name in run.scores)
        found = {
            name: mean_over_seeds(run.scores[name].value for run in self.runs if name in run.scores) for name in names
        }
        return {name: value for name, value in found.items() if value is not None}

    @property
    def inference_ms(self) -> float | None:
        mean = mean_over_seeds(run.record.inference_ms for run in self.runs)
        return mean.mean if mean else None

    @property
    def training_seconds(self) -> float | None:
        mean = mean_over_seeds(run.record.training_seconds for run in self.runs)
        return mean.mean if mean else None

    @property
    def parameters(self) -> int | None:
        return self.first.record.parameters

    @property
    def label(self) -> str:
        return f"{self.first.model} ({self.variant})" if self.variant else self.first.model

    @cached_property
    def equation(self) -> str:
        told = mapping(self.first.record.task.get("equation")).get("name")  # what imported data obey
        return text(told) if told else several(d.equation for d in self.first.datasets) or text(None)

    def field(self, key: str) -> str:
        """A field of the equation, every value it takes in a mixture."""
        return several(d.fields.get(key) for d in self.first.datasets) or text(None)

    @property
    def inputs(self) -> str:
        return self.first.inputs

    @cached_property
    def view(self) -> str:
        """The task's other fields, where they differ from their defaults."""
        defaults = {f.name: f.default for f in dataclasses.fields(TaskSpec)}
        rest = {
            k: v for k, v in self.first.record.task.items() if k not in ("inputs", "equation") and defaults.get(k) != v
        }
        return " ".join(f"{text(k)}={text(v)}" for k, v in rest.items())


@dataclass(frozen=True)
class Leaderboard:
    """Rows and all their metrics, with the equations and tasks to filter by."""

    rows: Sequence[BoardRow]

    @cached_property
    def metrics(self) -> list[str]:
        return metrics_of(self.rows)

    @property
    def equations(self) -> list[str]:
        return sorted({row.equation for row in self.rows})

    @property
    def tasks(self) -> list[str]:
        return sorted({row.inputs for row in self.rows})


def rows_of(runs: Iterable[ShownRun]) -> list[BoardRow]:
    """One row per group of seeds, sorted by problem and main metric; variants are named, the best marked."""
    groups: dict[str, BoardRow] = {}
    for run in runs:
        groups.setdefault(run.group, BoardRow([])).runs.append(run)
    rows = list(groups.values())
    for row in rows:
        row.runs.sort(key=lambda run: (real(run.record.options.get("seed")) or 0.0, run.seed, run.key))
    problems: dict[str, list[BoardRow]] = {}
    for row in rows:
        problems.setdefault(row.first.problem, []).append(row)
    for problem in problems.values():
        _tell_apart(problem)
        _mark_best(problem)
    return sorted(rows, key=_order)


def _order(row: BoardRow) -> tuple[Any, ...]:
    data = row.first.datasets[0].fields if row.first.datasets else {}
    numbers = tuple(_rank(real(data.get(key))) for key in ("sigma", "truncation"))
    score = row.scores.get(MAIN)
    place = (row.equation, row.inputs, row.field("boundary"), *numbers, len(row.first.datasets), row.first.problem)
    return (*place, _rank(score.mean if score else None), row.first.model, row.first.key)


def _rank(value: float | None) -> float:
    return math.inf if value is None or math.isnan(value) else value


def _tell_apart(problem: Sequence[BoardRow]) -> None:
    """Where a model has several rows, name the settings in which they differ."""
    for model in {row.first.model for row in problem}:
        same = [row for row in problem if row.first.model == model]
        settings = [row.first.settings for row in same]
        keys = list(dict.fromkeys(key for values in settings for key in values))
        differing = [key for key in keys if len({fingerprint(values.get(key)) for values in settings}) > 1]
        for row, values in zip(same, settings, strict=True):
            row.variant = ", ".join(f"{text(key)}={text(values.get(key))}" for key in differing)


def _mark_best(problem: Sequence[BoardRow]) -> None:
    """Equal rows are all marked; a metric that one row alone has marks none."""
    competing = [row for row in problem if not row.first.solver]
    for metric in metrics_of(competing):
        means = {k: row.scores[metric].mean for k, row in enumerate(competing) if metric in row.scores}
        order = ranked(means, metric)
        for k in order if len(means) > 1 else []:
            if gap(means[k], metric) == gap(means[order[0]], metric):
                competing[k].best.add(metric)


def metrics_of(rows: Iterable[BoardRow]) -> list[str]:
    """All metrics that some row has: the package's in their usual order, then others."""
    found = {name for row in rows for name in row.scores}
    return [name for name in DEFAULT if name in found] + sorted(found - set(DEFAULT))
