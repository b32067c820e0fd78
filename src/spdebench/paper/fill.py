"""A table with its numbers, from run records alone: a table never trains."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from spdebench.errors import UserError, one_line
from spdebench.metrics import METRICS, Scores, compare
from spdebench.metrics.scores import Score
from spdebench.paper.base import Cell, Edition, Table
from spdebench.paper.layout import NOTES
from spdebench.training.solver_row import FINER, INDEPENDENT, SOLVER

Records = Mapping[str, Mapping[str, Any]]
Place = tuple[str, str]
"""(group, column)."""


@dataclass(frozen=True)
class Entry:
    """A cell and what its runs give: values (one a finished run), their mean and s.d., and how to get what is missing.

    ``samples``: relative L2 of each test sample, mean over seeds; None where the metric has none.
    """

    cell: Cell
    values: tuple[float, ...]
    digests: tuple[str, ...]
    mean: float | None
    std: float | None
    samples: np.ndarray | None
    command: str
    inference_ms: float | None
    parameters: int | None

    @property
    def seeds_done(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> int:
        return len(self.cell.runs) - len(self.values)

    @property
    def ratio(self) -> float | None:
        """Ours / published."""
        if self.mean is None or not self.cell.published:
            return None
        return self.mean / self.cell.published


@dataclass(frozen=True)
class Group:
    """Entries that form one rectangle: rows of models, columns."""

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    entries: Mapping[tuple[str, str], Entry]  # (row, column)

    def row(self, name: str) -> list[Entry]:
        return [self.entries[name, c] for c in self.columns if (name, c) in self.entries]

    def column(self, name: str) -> list[Entry]:
        return [self.entries[r, name] for r in self.rows if (r, name) in self.entries]

    def inference_ms(self, row: str) -> float | None:
        times = [e.inference_ms for e in self.row(row) if e.inference_ms is not None]
        return statistics.median(times) if times else None

    def parameters(self, row: str) -> int | None:
        return next((e.parameters for e in self.row(row) if e.parameters), None)


@dataclass(frozen=True)
class Filled:
    """A table filled. ``best`` and ``significance`` (p-value against the runner-up) by (group, column)."""

    table: Table
    edition: Edition
    entries: tuple[Entry, ...]
    groups: tuple[Group, ...]
    best: Mapping[Place, str]
    significance: Mapping[Place, tuple[float, str]]  # p-value, runner-up
    notes: tuple[str, ...]
    devices: tuple[str, ...] = field(default=())

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(e.cell.row for e in self.entries))

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(e.cell.column for e in self.entries))

    @property
    def done(self) -> int:
        """Cells with at least one seed."""
        return sum(1 for e in self.entries if e.values)

    def missing(self) -> dict[str, list[Entry]]:
        """Command -> the entries that it fills."""
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            if entry.missing:
                found.setdefault(entry.command, []).append(entry)
        return found


def value_of(record: Mapping[str, Any], metric: str, part: str = "test") -> float | None:
    """A number of a record; None where the record lacks the part or was not timed, NaN where the part has no such
    (finite) score."""
    if metric == "inference_ms" and record.get(metric) is None:
        return None
    if metric in ("val", "inference_ms"):
        raw = record.get(metric)
    else:
        home = record if part == "test" else record.get("shifts", {}).get(part)
        if home is None:
            return None
        raw = home.get("scores", {}).get(metric, {}).get("value")
    return math.nan if raw is None else float(raw)


def samples_of(record: Mapping[str, Any], metric: str, part: str) -> list[float] | None:
    home = record if part == "test" else record.get("shifts", {}).get(part, {})
    found = home.get("samples", {}).get(metric)
    return None if not found else [math.nan if x is None else float(x) for x in found]


def fill(table: Table, records: Records, seeds: int = 3, edition: Edition = "paper") -> Filled:
    """Every cell of the table with what the records know of it."""
    entries = tuple(_entry(cell, records, seeds, edition) for cell in table.cells(seeds, edition))
    groups = _groups(entries)
    best: dict[Place, str] = {}
    significance: dict[Place, tuple[float, str]] = {}
    for group in groups:
        for column in group.columns:
            ranked = _ranked(group, column)
            if ranked:
                best[group.name, column] = ranked[0].cell.row
            if len(ranked) > 1 and (p := _p_value(ranked[0], ranked[1])) is not None:
                significance[group.name, column] = (p, ranked[1].cell.row)
    timed = [r for r in _used(entries, records) if r.get("inference_ms") is not None and "provenance" in r]
    devices = sorted({one_line(str(r["provenance"].get("device", "?"))) for r in timed})
    return Filled(table, edition, entries, groups, best, significance, _notes(table, entries), tuple(devices))


def _notes(table: Table, entries: tuple[Entry, ...]) -> tuple[str, ...]:
    rows = {"", *(e.cell.row for e in entries)} if entries else set()
    return (*table.notes, *(note for row, note in NOTES.items() if row in rows))


def narrowed(filled: Filled, keep: Callable[[Cell], bool]) -> Filled:
    """Some cells of it; which is the best of a column is still said of the whole table."""
    entries = tuple(e for e in filled.entries if keep(e.cell))
    groups = _groups(entries)
    rows = {(e.cell.group, e.cell.column, e.cell.row) for e in entries}
    significance = {place: p for place, p in filled.significance.items() if (*place, filled.best[place]) in rows}
    notes = _notes(filled.table, entries)
    return replace(filled, entries=entries, groups=groups, significance=significance, notes=notes)


def _used(entries: tuple[Entry, ...], records: Records) -> list[Mapping[str, Any]]:
    return [records[d] for d in dict.fromkeys(d for e in entries for d in e.digests)]


def _entry(cell: Cell, records: Records, seeds: int, edition: Edition) -> Entry:
    values, found, rows = [], [], []
    for run in cell.runs:
        record = records.get(run.digest)
        value = None if record is None else value_of(record, cell.metric, cell.part)
        if record is not None and value is not None:
            values.append(value)
            found.append(record)
            rows.append(samples_of(record, cell.metric, cell.part))
    whole = [r for r in rows if r is not None]
    paired = len(whole) == len(rows) > 0 and len({len(r) for r in whole}) == 1
    return Entry(
        cell=cell,
        values=tuple(values),
        digests=tuple(str(r["digest"]) for r in found),
        mean=_finite(statistics.fmean, values) if values else None,
        std=_finite(statistics.stdev, values) if len(values) > 1 and all(map(math.isfinite, values)) else None,
        samples=np.mean(np.array(whole), axis=0) if paired else None,
        command=command_for(cell, seeds, edition),
        inference_ms=None if cell.part in (FINER, INDEPENDENT) else _median(found, "inference_ms"),
        parameters=int(found[0]["counts"]["parameters"]) if found and "counts" in found[0] else None,
    )


def _finite(statistic: Callable[[list[float]], float], values: list[float]) -> float:
    """A statistic; NaN where the values are too large for it or cancel as infinities."""
    try:
        return statistic(values)
    except (OverflowError, ValueError):
        return math.nan


def _median(found: list[Mapping[str, Any]], key: str) -> float | None:
    values = [float(r[key]) for r in found if r.get(key) is not None]
    return statistics.median(values) if values else None


def command_for(cell: Cell, seeds: int = 3, edition: Edition = "paper") -> str:
    """What to type to get a cell's missing runs."""
    extra = "" if seeds == 3 else f" --seeds {seeds}"
    extra += "" if edition == "paper" else f" --edition {edition}"
    return f"spdebench table {cell.table} --run --only {cell.model}{extra}"


def _groups(entries: tuple[Entry, ...]) -> tuple[Group, ...]:
    return tuple(_group(name, entries) for name in dict.fromkeys(e.cell.group for e in entries))


def _group(name: str, entries: tuple[Entry, ...]) -> Group:
    here = [e for e in entries if e.cell.group == name]
    return Group(
        name,
        tuple(dict.fromkeys(e.cell.row for e in here)),
        tuple(dict.fromkeys(e.cell.column for e in here)),
        {(e.cell.row, e.cell.column): e for e in here},
    )


def _ranked(group: Group, column: str) -> list[Entry]:
    """Entries of a column from the best; the solver and its marks do not compete."""
    here = [group.entries[row, column] for row in group.rows if (row, column) in group.entries]
    learned = [e for e in here if e.cell.model != SOLVER and e.mean is not None and math.isfinite(e.mean)]
    return sorted(learned, key=_distance)


def _distance(entry: Entry) -> float:
    """From what a perfect prediction scores: 0 for errors and times, 1 for a ratio."""
    ideal = METRICS[entry.cell.metric].ideal if entry.cell.metric in METRICS else 0.0
    return abs((entry.mean or 0.0) - ideal)


def _p_value(first: Entry, second: Entry) -> float | None:
    """Paired over test samples (bootstrap of the difference of means), each sample's error averaged over seeds."""
    if first.samples is None or second.samples is None or len(first.samples) != len(second.samples):
        return None
    return _compared(tuple(first.samples.tolist()), tuple(second.samples.tolist()), first.cell.metric)


@functools.lru_cache(maxsize=4096)
def _compared(first: tuple[float, ...], second: tuple[float, ...], metric: str) -> float | None:
    try:
        return compare({"first": _scores(first, metric), "second": _scores(second, metric)}, metric)[0].bootstrap
    except UserError:  # too few samples, or not finite: nothing can be said
        return None


def _scores(samples: tuple[float, ...], metric: str) -> Scores:
    array = np.array(samples)
    score = Score(metric, float(np.nanmean(array)), "samplewise", samples=array)
    return Scores({metric: score}, {"samples": len(array)}, None, {})
