"""The numbers of a table: one entry per cell, with the records of its runs; entries in groups; the filled table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from spdebench.paper.base import Cell, Edition, Table
from spdebench.records import Record
from spdebench.records.record import FINER, FLOOR, INDEPENDENT, TEST
from spdebench.records.summary import (
    MAIN,
    SeedMean,
    at_floor,
    median,
    ratio,
)
from spdebench.training.scoring import BATCH
from spdebench.training.solver_row import SOLVER

GroupAndColumn = tuple[str, str]
"""(group, column)."""


@dataclass(frozen=True)
class Entry:
    """A cell, the records of its finished runs, their mean over seeds, and the command that makes the missing runs.

    ``samples``: the metric of each test sample, averaged over seeds; None for a metric without such values.
    ``no_number``: text that is shown if finished runs have no number.
    """

    cell: Cell
    records: tuple[Record, ...]
    summary: SeedMean | None
    samples: np.ndarray | None
    command: str
    no_number: str = ""

    @property
    def values(self) -> tuple[float, ...]:
        """The number of each finished run."""
        return self.summary.values if self.summary else ()

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(r.digest for r in self.records)

    @property
    def mean(self) -> float | None:
        return self.summary.mean if self.summary else None

    @property
    def std(self) -> float | None:
        return self.summary.std if self.summary else None

    @property
    def drawable(self) -> bool:
        """Whether a figure can show it: a run has a number, and its record the figure data that the cell asks for."""
        needed = set(self.cell.figure_data)
        return bool(self.values) and any(needed <= set(r.figure_data.names) for r in self.records)

    @property
    def seeds_done(self) -> int:
        return len(self.records)

    @property
    def missing(self) -> int:
        return len(self.cell.runs) - len(self.records)

    @property
    def ratio(self) -> float | None:
        """Our mean divided by the published one."""
        return ratio(self.mean, self.cell.published)

    @property
    def inference_ms(self) -> float | None:
        """The median over the runs; None for distances between solutions, which have no inference time."""
        return None if self.cell.part in (FINER, INDEPENDENT, FLOOR) else median(r.inference_ms for r in self.records)

    @property
    def parameters(self) -> int | None:
        return self.records[0].parameters if self.records else None


@dataclass(frozen=True)
class ColumnNumbers:
    """Floor, nonlinearity and identifiability of the problem of a column; each None if there is no run."""

    floor: float | None = None
    nonlinearity: float | None = None
    identifiability: float | None = None


@dataclass(frozen=True)
class Group:
    """Entries of one group of a table, by row and column. ``rows`` does not contain the floor, see `numbers`."""

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    entries: Mapping[tuple[str, str], Entry]  # (row, column)
    whole: Group | None = None  # the group with all its rows, if only some of them are shown

    def row(self, name: str) -> list[Entry]:
        return [self.entries[name, c] for c in self.columns if (name, c) in self.entries]

    def column(self, name: str) -> list[Entry]:
        return [self.entries[r, name] for r in self.rows if (r, name) in self.entries]

    def numbers(self, column: str) -> ColumnNumbers:
        """The three numbers of the column's problem, from the rows of the solver, `linear` and `step`."""
        if self.whole is not None:
            return self.whole.numbers(column)
        errors = [e for (_, c), e in self.entries.items() if c == column and e.cell.metric == MAIN]

        def first(part: str, model: str, kernel: str | None = None) -> float | None:
            found = (e for e in errors if e.cell.part == part and e.cell.model == model and _kernel(e) == kernel)
            return next((e.mean for e in found if e.mean is not None), None)

        tested = next((e.cell.part for e in errors if e.cell.model != SOLVER), TEST)
        return ColumnNumbers(first(FLOOR, SOLVER), first(tested, "linear", "exact"), first(tested, "step"))

    def at_floor(self, entry: Entry) -> bool:
        """Whether an error of a model lies within 1.2 of the floor of its problem."""
        cell = entry.cell
        known = cell.metric == MAIN and cell.model != SOLVER
        return known and at_floor(entry.mean, self.numbers(cell.column).floor)

    def inference_ms(self, row: str) -> float | None:
        return median(e.inference_ms for e in self.row(row))

    def parameters(self, row: str) -> int | None:
        return next((e.parameters for e in self.row(row) if e.parameters), None)


@dataclass(frozen=True)
class Filled:
    """A table with its numbers. ``best`` and ``significance`` (p-value against the runner-up) by (group, column).

    The best of a column are all models within 1.2 of the floor, if there are any.
    """

    table: Table
    edition: Edition
    entries: tuple[Entry, ...]
    groups: tuple[Group, ...]
    best: Mapping[GroupAndColumn, tuple[str, ...]]  # rows
    significance: Mapping[GroupAndColumn, tuple[float, str]]  # p-value, runner-up
    notes: tuple[str, ...]
    devices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # device -> rows timed there
    batches: tuple[int, ...] = (BATCH,)  # sizes of the batches at which inference times were measured

    @property
    def times_text(self) -> str:
        """The batch and the device of the inference times, and the rows that were timed on another device:
        ``batch 100 on cuda: ..; FNO, GT on cpu: ..``."""
        most, *others = sorted(self.devices, key=lambda device: -len(self.devices[device]))
        text = f"batch {' and '.join(map(str, self.batches))} on {most}"
        return "; ".join([text, *(f"{', '.join(self.devices[device])} on {device}" for device in others)])

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(e.cell.row for e in self.entries))

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(e.cell.column for e in self.entries))

    @property
    def has_published(self) -> bool:
        """Whether any cell has a published number."""
        return any_published(self.entries)

    @property
    def done(self) -> int:
        """How many cells have at least one finished run."""
        return sum(1 for e in self.entries if e.values)

    def missing(self) -> dict[str, list[Entry]]:
        """The entries with missing runs, by the command that makes these."""
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            if entry.missing:
                found.setdefault(entry.command, []).append(entry)
        return found


def _kernel(entry: Entry) -> str | None:
    """The kernel of a model's configuration; None for models without one."""
    config = getattr(entry.cell.runs[0], "config", {})
    return None if entry.cell.model == SOLVER else config.get("kernel")


def any_published(entries: tuple[Entry, ...]) -> bool:
    return any(e.cell.published is not None for e in entries)
