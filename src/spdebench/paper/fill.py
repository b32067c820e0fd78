"""A table with its numbers, computed from run records; a table never trains."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from spdebench.data import DatasetSpec
from spdebench.data.blocks import BLOCK
from spdebench.data.identity import dataset_of
from spdebench.errors import one_line
from spdebench.paper.base import AnySpec, Cell, Edition, Table, third_party_models
from spdebench.paper.layout import DATA_NOTE, NOTES, OURS_NOTE, PUBLISHED_NOTE
from spdebench.paper.skill import ENERGY_SCORE, with_skill
from spdebench.records import Record, Records
from spdebench.records.record import FINER, FLOOR, INDEPENDENT, TEST
from spdebench.records.summary import (
    MAIN,
    SKILL,
    SeedMean,
    at_floor,
    leaders,
    mean_over_seeds,
    mean_samples,
    median,
    p_value,
    ranked,
    ratio,
)
from spdebench.registry import command
from spdebench.tasks.split import BLOCKS, weights
from spdebench.training.scoring import BATCH
from spdebench.training.solver_row import SOLVER, floor_of

Place = tuple[str, str]
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
        """One per finished run."""
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
    best: Mapping[Place, tuple[str, ...]]  # rows
    significance: Mapping[Place, tuple[float, str]]  # p-value, runner-up
    notes: tuple[str, ...]
    devices: tuple[str, ...] = field(default=())
    batches: tuple[int, ...] = (BATCH,)  # sizes of the batches at which inference times were measured

    @property
    def times_text(self) -> str:
        """The batch and the device of the inference times: ``batch 100 on cpu: ..``."""
        return f"batch {' and '.join(map(str, self.batches))} on {' and '.join(self.devices)}"

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(e.cell.row for e in self.entries))

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(e.cell.column for e in self.entries))

    @property
    def has_published(self) -> bool:
        """Whether any cell has a published number."""
        return _has_published(self.entries)

    @property
    def done(self) -> int:
        """Cells with at least one seed."""
        return sum(1 for e in self.entries if e.values)

    def missing(self) -> dict[str, list[Entry]]:
        """The entries with missing runs, by the command that makes these."""
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            if entry.missing:
                found.setdefault(entry.command, []).append(entry)
        return found


def fill(table: Table, records: Records, seeds: int = 3, edition: Edition = "paper") -> Filled:
    """The table with the numbers of all its cells from the records, and rows of third-party models with records."""
    own = {w.model for w in table.wants}
    recorded = {r.model for r in records.values()}.intersection(third_party_models()) - own
    cells = table.with_models(sorted(recorded)).cells(seeds, edition, records)
    known = (_entry(cell, records, seeds, edition) for cell in cells)
    entries = with_skill([e for e in known if e.records or e.cell.model in own])
    groups = _groups(entries)
    best: dict[Place, tuple[str, ...]] = {}
    significance: dict[Place, tuple[float, str]] = {}
    for group in groups:
        for column in group.columns:
            order = _ranked(group, column)
            if order:
                means = {e.cell.row: e.mean for e in order}
                best[group.name, column] = tuple(leaders(means, order[0].cell.metric, group.numbers(column).floor))
            if len(order) > 1 and len(best[group.name, column]) == 1:
                p = p_value(order[0].samples, order[1].samples, order[0].cell.metric)
                if p is not None:
                    significance[group.name, column] = (p, order[1].cell.row)
    timed = {r.digest: r for e in entries for r in e.records if r.inference_ms is not None}
    devices = sorted({one_line(r.provenance.device or "?") for r in timed.values()})
    batches = sorted({r.inference_batch or BATCH for r in timed.values()})  # older records of the solver state none
    notes, edition = _notes(table, entries), table.edition or edition
    return Filled(table, edition, entries, groups, best, significance, notes, tuple(devices), tuple(batches))


def _notes(table: Table, entries: tuple[Entry, ...]) -> tuple[str, ...]:
    """The notes of a table, a note on aliasing, and those of `NOTES` for its rows."""
    if not entries:
        return table.notes
    general = [PUBLISHED_NOTE if _has_published(entries) else OURS_NOTE]
    if not any(note.startswith(DATA_NOTE.split()[0]) for note in table.notes):
        general.insert(0, _data_note([run for e in entries for run in e.cell.runs[:1]]))
    rows = {e.cell.row for e in entries}
    return (*table.notes, *_aliasing(entries), *general, *(note for row, note in NOTES.items() if row in rows))


def _data_note(runs: Sequence[AnySpec]) -> str:
    """Number of samples, seed and split of most of the runs."""
    data = [d for run in runs for d in run.datasets]
    rule, seed = statistics.mode((run.task["split"], run.task["seed"]) for run in runs)
    split = f"{':'.join(map(str, weights(rule)))} "
    split += f"in blocks of {sum(BLOCK.values())}" if rule == BLOCKS else f"by one permutation ({seed})"
    common = {key: statistics.mode(d[key] for d in data) for key in ("n", "seed")}
    return DATA_NOTE.format(samples=common["n"], seed=common["seed"], split=split)


def _has_published(entries: tuple[Entry, ...]) -> bool:
    return any(e.cell.published is not None for e in entries)


def _aliasing(entries: tuple[Entry, ...]) -> tuple[str, ...]:
    """A note if the noise of some data has more modes than their grid."""
    data = dict.fromkeys(dataset_of(d) for e in entries for run in e.cell.runs[:1] for d in run.datasets)
    found: dict[str, dict[int, None]] = {}
    for each in data:
        if _aliases(each):
            found.setdefault(each.equation.name, {})[each.equation.truncation] = None
    if not found:
        return ()
    where = "; ".join(f"{name} J = {', '.join(map(str, sorted(levels)))}" for name, levels in found.items())
    return (
        f"Aliasing: J exceeds the grid ({where}). Edition paper evaluates the noise at the grid points, where high "
        "modes alias onto low ones, as in the paper's solver; 'spdebench generate' requires --allow-aliasing there.",
    )


@cache
def _aliases(dataset: DatasetSpec) -> bool:
    return bool(dataset.equation.aliasing_message())


def narrowed(filled: Filled, keep: Callable[[Cell], bool]) -> Filled:
    """The table with only the cells that ``keep`` accepts; best rows and reference errors are of the whole table."""
    entries = tuple(e for e in filled.entries if keep(e.cell))
    whole = {group.name: group for group in filled.groups}
    groups = tuple(replace(group, whole=whole[group.name]) for group in _groups(entries))
    rows = {(e.cell.group, e.cell.column, e.cell.row) for e in entries}
    significance = {place: p for place, p in filled.significance.items() if (*place, *filled.best[place]) in rows}
    notes = tuple(dict.fromkeys([*_notes(filled.table, entries), *({NOTES[FLOOR]} & {*filled.notes})]))
    return replace(filled, entries=entries, groups=groups, significance=significance, notes=notes)


def _entry(cell: Cell, records: Records, seeds: int, edition: Edition) -> Entry:
    """The cell with its numbers from the records."""
    known = [] if cell.pilots else [records[run.digest] for run in cell.runs if run.digest in records]
    values = {r.digest: _value(r, cell) for r in known}
    found = tuple(r for r in known if values[r.digest] is not None)
    return Entry(
        cell=cell,
        records=found,
        summary=mean_over_seeds(values[r.digest] for r in found),
        samples=mean_samples(found, cell.metric, cell.part),
        command=command_for(cell, seeds, edition),
    )


def _value(record: Record, cell: Cell) -> float | None:
    """The number of a cell in a record; for skill the energy score, from which it is computed later."""
    if cell.part == FLOOR:
        return floor_of(record)
    if cell.further_metric and record.not_scored([cell.metric], cell.part):
        return None
    return record.value(ENERGY_SCORE if cell.metric == SKILL else cell.metric, cell.part)


def _kernel(entry: Entry) -> str | None:
    """The kernel of a model's configuration; None for models without one."""
    config = getattr(entry.cell.runs[0], "config", {})
    return None if entry.cell.model == SOLVER else config.get("kernel")


def command_for(cell: Cell, seeds: int = 3, edition: Edition = "paper") -> str:
    """The command that makes a cell's missing runs."""
    extra = "" if seeds == 3 else f" --seeds {seeds}"
    extra += "" if edition == "paper" else f" --edition {edition}"
    return command(f"table {cell.table} --run --only {cell.model}{extra}")


def _groups(entries: tuple[Entry, ...]) -> tuple[Group, ...]:
    return tuple(_group(name, entries) for name in dict.fromkeys(e.cell.group for e in entries))


def _group(name: str, entries: tuple[Entry, ...]) -> Group:
    """The group called ``name``, with rows and columns in the order of its entries."""
    members = [e for e in entries if e.cell.group == name]
    return Group(
        name,
        tuple(dict.fromkeys(e.cell.row for e in members if e.cell.part != FLOOR)),
        tuple(dict.fromkeys(e.cell.column for e in members)),
        {(e.cell.row, e.cell.column): e for e in members},
    )


def _ranked(group: Group, column: str) -> list[Entry]:
    """Entries of a column, the best first; the solver and models that know the data's scheme do not compete."""
    learned = [e for e in group.column(column) if e.cell.model != SOLVER and e.cell.ranked]
    if not learned:
        return []
    order = ranked({k: e.mean for k, e in enumerate(learned)}, learned[0].cell.metric)
    return [learned[k] for k in order]
