"""The rows of one problem (datasets and task, so that scores can be compared), and its reference errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from spdebench.errors import UserError
from spdebench.records import Record
from spdebench.records.summary import MAIN, SeedMean, mean_over_seeds, ranked
from spdebench.report.board.rows import BoardRow, metrics_of
from spdebench.report.board.shown import ShownDataset
from spdebench.report.board.submitted import suite_problems
from spdebench.report.formatting import text
from spdebench.training.solver_row import floor_of

LAW = "energy_score"
"""The metric by which predicted laws are ordered."""


@dataclass(frozen=True)
class Problem:
    """The rows that can be compared: the same datasets and task. The best comes first."""

    rows: Sequence[BoardRow]

    @property
    def key(self) -> str:
        """The name of its place on a page."""
        return self.rows[0].first.problem

    @cached_property
    def metric(self) -> str:
        """The metric that ranks: the energy score if only a part of the noise is given and some row has that score."""
        law = self.rows[0].first.record.task.get("seen") is not None
        return LAW if law and any(LAW in row.scores for row in self.rows) else MAIN

    @property
    def suite(self) -> str:
        """The suite of the problem and its name there; empty if it is in none."""
        return suite_problems().get(self.key, "")

    @property
    def equation(self) -> str:
        return self.rows[0].equation

    @property
    def datasets(self) -> Sequence[ShownDataset]:
        return self.rows[0].first.datasets

    @cached_property
    def choices(self) -> dict[str, str]:
        """The values by which a reader can filter problems, by name."""
        row = self.rows[0]
        found = {name: row.field(key) for name, key in (("J", "truncation"), ("σ", "sigma"), ("boundary", "boundary"))}
        return {
            "equation": row.equation,
            **found,
            "task": row.inputs,
            "networks": "some" if self.networks else "none",
            "suite": self.suite.partition(" ")[0] or "none",
        }

    @cached_property
    def parts(self) -> list[str]:
        """The problem in words, without its equation; fields of data and task that differ from defaults come last."""
        named = {"J": "J = {}", "σ": "σ = {}", "boundary": "{}", "task": "{}"}
        found = [shape.format(self.choices[key]) for key, shape in named.items() if self.choices[key] != text(None)]
        more = dict.fromkeys(word for data in self.datasets[:3] for word in data.extras.split())
        return [*found, *more, *self.rows[0].view.split()]

    @cached_property
    def metrics(self) -> list[str]:
        """All metrics except the one that ranks."""
        return [name for name in metrics_of(self.rows) if name != self.metric]

    @cached_property
    def networks(self) -> list[BoardRow]:
        """Rows that were trained: ours and submissions."""
        return [row for row in self.rows if row.learned]

    @property
    def submissions(self) -> list[BoardRow]:
        return [row for row in self.rows if row.kind == "submission"]

    @property
    def best_network(self) -> BoardRow | None:
        return self._best([row for row in self.networks if row.competes])

    @property
    def best_baseline(self) -> BoardRow | None:
        """The best row that has no network."""
        return self._best([row for row in self.rows if row.kind == "baseline"])

    def _best(self, rows: Sequence[BoardRow]) -> BoardRow | None:
        order = ranked({k: row.main.mean for k, row in enumerate(rows) if row.main}, self.metric)
        return rows[order[0]] if order else None

    # --- reference numbers ----------------------------------------------------------------------------------------
    @property
    def fine_reference(self) -> SeedMean | None:
        """The distance of the data to a finer solution with the same noise; None if no solver row has it."""
        return next((row.main for row in self.rows if row.first.solver and row.main), None)

    @cached_property
    def floor(self) -> SeedMean | None:
        """The best possible score with the given input: for laws the score of the true law, otherwise the floor in the
        solver's record; None if there is no such record."""
        if self.metric == LAW:
            return next((row.main for row in self.rows if row.first.true_law), None)
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
    """The floor in a solver's record; None if its equation is not declared."""
    try:
        return floor_of(record)
    except UserError:
        return None


def problems_of(rows: Iterable[BoardRow]) -> list[Problem]:
    """The rows grouped by problem, in their order."""
    found: dict[str, list[BoardRow]] = {}
    for row in rows:
        found.setdefault(row.first.problem, []).append(row)
    return [Problem(each) for each in found.values()]
