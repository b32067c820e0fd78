"""Runs as rows of a leaderboard: runs that differ only in their seed are one row, mean ± s.d.

A *problem* is datasets and task: what scores can be compared on. The best of a problem is, for each metric, the row
whose mean is nearest to the metric's ideal value; the solver and models that are given the kernel of the data's scheme
are shown, but do not compete. A problem on which no network was trained has no ranks and no best row.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from spdebench.errors import UserError
from spdebench.metrics import DEFAULT
from spdebench.records import Record
from spdebench.records.summary import MAIN, SeedMean, gap, leaders, mean_over_seeds, ranked
from spdebench.report.site.formatting import fingerprint, mapping, real, several, slug, text
from spdebench.report.site.shown import ShownDataset, ShownRun
from spdebench.tasks import TaskSpec
from spdebench.training.solver_row import floor_of

ROWS = 200  # rows of a board on one page: about 200 kB


@dataclass
class BoardRow:
    """Runs that differ in their seed only."""

    runs: list[ShownRun]
    variant: str = ""  # what tells it from other rows of the same model and problem
    best: set[str] = field(default_factory=set)  # metrics on which it is the best of its problem
    rank: int | None = None  # by the main metric, among networks and baselines

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
    def network(self) -> bool:
        return not (self.first.solver or self.first.baseline)

    @property
    def main(self) -> SeedMean | None:
        """Mean of the main metric."""
        return self.scores.get(MAIN)

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
class Problem:
    """The rows that can be compared: the same datasets and task. The best comes first."""

    rows: Sequence[BoardRow]

    @property
    def key(self) -> str:
        """Names its place on a page."""
        return self.rows[0].first.problem

    @property
    def equation(self) -> str:
        return self.rows[0].equation

    @property
    def datasets(self) -> Sequence[ShownDataset]:
        return self.rows[0].first.datasets

    @cached_property
    def choices(self) -> dict[str, str]:
        """What a reader may choose problems by."""
        row = self.rows[0]
        found = {name: row.field(key) for name, key in (("J", "truncation"), ("σ", "sigma"), ("boundary", "boundary"))}
        return {"equation": row.equation, **found, "task": row.inputs, "networks": "some" if self.networks else "none"}

    @cached_property
    def parts(self) -> list[str]:
        """The problem without its equation: what data and task differ in from their defaults comes last."""
        named = {"J": "J = {}", "σ": "σ = {}", "boundary": "{}", "task": "{}"}
        found = [shape.format(self.choices[key]) for key, shape in named.items() if self.choices[key] != text(None)]
        more = dict.fromkeys(word for data in self.datasets[:3] for word in data.extras.split())
        return [*found, *more, *self.rows[0].view.split()]

    @cached_property
    def metrics(self) -> list[str]:
        """All metrics but the main one."""
        return [name for name in metrics_of(self.rows) if name != MAIN]

    @cached_property
    def networks(self) -> list[BoardRow]:
        return [row for row in self.rows if row.network]

    @property
    def best_network(self) -> BoardRow | None:
        return _best(self.networks)

    @property
    def best_baseline(self) -> BoardRow | None:
        """The best row that has no network."""
        return _best([row for row in self.rows if row.first.baseline])

    @property
    def fine_reference(self) -> SeedMean | None:
        """The distance of the data to a finer solution with the same noise; None where no solver row has it."""
        return next((row.main for row in self.rows if row.first.solver and row.main), None)

    @cached_property
    def floor(self) -> SeedMean | None:
        """The smallest error that what a model is given allows; None where no solver's record has it."""
        solvers = (row.first.record for row in self.rows if row.first.solver)
        return next((mean for record in solvers if (mean := mean_over_seeds([_floor(record)]))), None)

    @property
    def nonlinearity(self) -> SeedMean | None:
        """The error of `linear` with the exact kernel."""
        exact = (row for row in self.rows if row.first.record.config.get("kernel") == "exact")
        return next((row.main for row in exact if row.first.record.model == "linear"), None)

    @property
    def identifiability(self) -> SeedMean | None:
        """The error of `step`."""
        return next((row.main for row in self.rows if row.first.record.model == "step"), None)


def _floor(record: Record) -> float | None:
    try:
        return floor_of(record)
    except UserError:  # of an equation that is not declared here
        return None


def _best(rows: Sequence[BoardRow]) -> BoardRow | None:
    order = ranked({k: row.main.mean for k, row in enumerate(rows) if row.main}, MAIN)
    return rows[order[0]] if order else None


def problems_of(rows: Iterable[BoardRow]) -> list[Problem]:
    """Rows by problem, in their order."""
    found: dict[str, list[BoardRow]] = {}
    for row in rows:
        found.setdefault(row.first.problem, []).append(row)
    return [Problem(each) for each in found.values()]


@dataclass(frozen=True)
class Leaderboard:
    """Problems, and the values to choose them by."""

    problems: Sequence[Problem]

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
        """What tells a problem from others of its equation, in one line."""
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
        return _rank(float(value)), value
    except ValueError:
        return math.inf, value


@dataclass(frozen=True)
class BoardPage:
    """A page of the leaderboard: problems of one equation, at most `ROWS` rows."""

    name: str
    path: str
    problems: Sequence[Problem]


def board_pages(problems: Sequence[Problem]) -> list[BoardPage]:
    """Pages for one equation each. A problem is cut only where it is longer than a page."""
    found = []
    for equation in dict.fromkeys(problem.equation for problem in problems):
        parts: list[list[Problem]] = [[]]
        for problem in problems:
            for k in range(0, len(problem.rows) if problem.equation == equation else 0, ROWS):
                piece = Problem(problem.rows[k : k + ROWS])
                if parts[-1] and sum(len(p.rows) for p in (*parts[-1], piece)) > ROWS:
                    parts.append([])
                parts[-1].append(piece)
        for k, part in enumerate(parts):
            name = equation if len(parts) == 1 else f"{equation}, part {k + 1} of {len(parts)}"
            found.append(BoardPage(name, f"boards/{slug(equation)}{f'-{k + 1}' if k else ''}.html", part))
    return found


def rows_of(runs: Iterable[ShownRun]) -> list[BoardRow]:
    """One row per group of seeds, sorted by problem and main metric; variants are named, the best marked."""
    groups: dict[str, BoardRow] = {}
    for run in runs:
        groups.setdefault(run.group, BoardRow([])).runs.append(run)
    rows = list(groups.values())
    for row in rows:
        row.runs.sort(key=lambda run: (real(run.record.options.get("seed")) or 0.0, run.seed, run.key))
    for problem in problems_of(rows):
        _tell_apart(problem.rows)
        _mark_best(problem)
    return sorted(rows, key=_order)


def _order(row: BoardRow) -> tuple[Any, ...]:
    data = row.first.datasets[0].order if row.first.datasets else ()
    place = (row.equation, row.inputs, data, len(row.first.datasets), row.view, row.first.problem)
    return (*place, _rank(row.main.mean if row.main else None), row.first.model, row.first.key)


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


def _mark_best(problem: Problem) -> None:
    """Set ranks and mark the best row of each metric, where a network ran. Equal rows, and all within 1.2 of the floor,
    are equal; a metric that one row alone has marks none."""
    if not problem.networks:
        return
    competing = [row for row in problem.rows if not row.first.solver and not row.first.record.knows_scheme]
    floor = problem.floor.mean if problem.floor else None
    for metric in metrics_of(competing):
        means = {k: row.scores[metric].mean for k, row in enumerate(competing) if metric in row.scores}
        gaps = {k: gap(means[k], metric) for k in ranked(means, metric)}
        first = leaders(means, metric, floor)
        for k, own in gaps.items():
            ahead = 0 if k in first else sum(other < own for other in gaps.values())
            if metric == MAIN:
                competing[k].rank = 1 + ahead
            if not ahead and len(means) > 1:
                competing[k].best.add(metric)


def metrics_of(rows: Iterable[BoardRow]) -> list[str]:
    """All metrics that some row has: the package's in their usual order, then others."""
    found = {name for row in rows for name in row.scores}
    return [name for name in DEFAULT if name in found] + sorted(found - set(DEFAULT))
