"""Runs as rows of a leaderboard: runs that differ only in their seed are one row, mean ± s.d."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from spdebench.challenge.submission import ENOUGH_SEEDS
from spdebench.metrics import DEFAULT
from spdebench.records.summary import MAIN, SeedMean, mean_over_seeds
from spdebench.report.board.shown import ShownRun
from spdebench.report.formatting import mapping, several, text
from spdebench.tasks import TaskSpec

RowKind = Literal["network", "submission", "baseline", "solver", "true law"]


@dataclass
class BoardRow:
    """A row of the leaderboard: runs that differ only in their seed."""

    runs: list[ShownRun]
    variant: str = ""  # the settings in which it differs from other rows of the same model and problem
    metric: str = MAIN  # the metric by which its problem is ranked
    best: set[str] = field(default_factory=set)  # metrics on which it is the best of its problem
    rank: int | None = None  # by `metric`, among the rows that compete

    @property
    def first(self) -> ShownRun:
        return self.runs[0]

    @cached_property
    def scores(self) -> dict[str, SeedMean]:
        """Mean and standard deviation over seeds, by metric."""
        names = dict.fromkeys(name for run in self.runs for name in run.scores)
        found = {
            name: mean_over_seeds(run.scores[name].value for run in self.runs if name in run.scores) for name in names
        }
        return {name: value for name, value in found.items() if value is not None}

    @property
    def main(self) -> SeedMean | None:
        """Mean and standard deviation of the metric by which the problem is ranked."""
        return self.scores.get(self.metric)

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

    # --- the kind of row ------------------------------------------------------------------------------------------
    @property
    def kind(self) -> RowKind:
        if self.first.submission is not None:
            return "submission"
        if self.first.reference:
            return "solver" if self.first.solver else "true law"
        return "baseline" if self.first.baseline else "network"

    @property
    def learned(self) -> bool:
        """Trained by gradients, as far as is known: our networks, and submissions."""
        return self.kind in ("network", "submission")

    @property
    def competes(self) -> bool:
        """Whether it is ranked: not a reference, not a pilot of a learning rate, and not given the data's scheme."""
        return not (self.first.reference or self.first.pilot or self.first.record.knows_scheme)

    @property
    def hidden(self) -> bool:
        """Whether all of its scores are on solutions that its authors did not have."""
        return all(run.scored is not None and run.scored.hidden for run in self.runs)

    @property
    def reproduced(self) -> bool | None:
        """Whether all repeated runs by the maintainers agreed within 2 %; None if there was none or it is our row."""
        known = [run.scored.reproduced for run in self.runs if run.scored and run.scored.reproduced is not None]
        return all(known) if known else None

    @property
    def checked(self) -> str:
        """How a score was obtained, in words."""
        if self.kind != "submission":
            return "our run"
        again = {True: "reproduced by us within 2 %", False: "not reproduced within 2 %", None: "not run again"}
        return f"{'hidden truth' if self.hidden else 'truth known to its authors'}, {again[self.reproduced]}"

    @property
    def few_seeds(self) -> str:
        """A note on a mean over fewer than three training seeds; otherwise empty."""
        count = len(self.runs)
        noted = self.learned and not self.first.pilot and count < ENOUGH_SEEDS
        return f"{count} seed{'s' * (count > 1)}" if noted else ""

    # --- its problem in words -------------------------------------------------------------------------------------
    @property
    def label(self) -> str:
        return f"{self.first.model} ({self.variant})" if self.variant else self.first.model

    @cached_property
    def equation(self) -> str:
        given = mapping(self.first.record.task.get("equation")).get("name")  # the equation of imported data
        return text(given) if given else several(d.equation for d in self.first.datasets) or text(None)

    def field(self, key: str) -> str:
        """The value of a field of the equation; all its values in a mixture."""
        return several(d.fields.get(key) for d in self.first.datasets) or text(None)

    @property
    def inputs(self) -> str:
        return self.first.inputs

    @cached_property
    def view(self) -> str:
        """The task's other fields that differ from their defaults."""
        defaults = {f.name: f.default for f in dataclasses.fields(TaskSpec)}
        others = {
            k: v for k, v in self.first.record.task.items() if k not in ("inputs", "equation") and defaults.get(k) != v
        }
        return " ".join(f"{text(k)}={text(v)}" for k, v in others.items())


def metrics_of(rows: Iterable[BoardRow]) -> list[str]:
    """All metrics that some row has: the package's in their usual order, then others."""
    found = {name for row in rows for name in row.scores}
    return [name for name in DEFAULT if name in found] + sorted(found - set(DEFAULT))
