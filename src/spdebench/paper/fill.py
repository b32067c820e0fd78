"""A table with its numbers, computed from run records; a table never trains."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from spdebench.data import DatasetSpec
from spdebench.data.blocks import BLOCK
from spdebench.data.identity import dataset_of
from spdebench.errors import one_line
from spdebench.paper.base import AnySpec, Cell, Edition, Table, third_party_models
from spdebench.paper.filled import Entry, Filled, Group, GroupAndColumn, any_published
from spdebench.paper.layout import DATA_NOTE, NOTES, OURS_NOTE, PUBLISHED_NOTE
from spdebench.paper.skill import ENERGY_SCORE, with_skill
from spdebench.records import Record, Records
from spdebench.records.record import FLOOR
from spdebench.records.summary import (
    SKILL,
    leaders,
    mean_over_seeds,
    mean_samples,
    p_value,
    ranked,
)
from spdebench.registry import command
from spdebench.tasks.split import BLOCKS, weights
from spdebench.training.scoring import BATCH
from spdebench.training.solver_row import SOLVER, floor_of


def fill(table: Table, records: Records, seeds: int = 3, edition: Edition = "paper") -> Filled:
    """The table with the numbers of all its cells from the records, and rows of third-party models with records."""
    own = {w.model for w in table.wants}
    recorded = {r.model for r in records.values()}.intersection(third_party_models()) - own
    cells = table.with_models(sorted(recorded)).cells(seeds, edition, records)
    known = (_entry(cell, records, seeds, edition) for cell in cells)
    entries = with_skill([e for e in known if e.records or e.cell.model in own])
    groups = _groups(entries)
    best: dict[GroupAndColumn, tuple[str, ...]] = {}
    significance: dict[GroupAndColumn, tuple[float, str]] = {}
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
    timed = [(e.cell.row, r) for e in entries for r in e.records if r.inference_ms is not None]
    rows_of: dict[str, dict[str, None]] = defaultdict(dict)  # device -> rows, each once
    for row, record in timed:
        rows_of[one_line(record.provenance.device or "?")][row] = None
    devices = {device: tuple(rows) for device, rows in sorted(rows_of.items())}
    batches = sorted({r.inference_batch or BATCH for _, r in timed})  # older records of the solver state none
    notes, edition = _notes(table, entries), table.edition or edition
    return Filled(table, edition, entries, groups, best, significance, notes, devices, tuple(batches))


def _notes(table: Table, entries: tuple[Entry, ...]) -> tuple[str, ...]:
    """The notes of a table, a note on aliasing, and those of `NOTES` for its rows."""
    if not entries:
        return table.notes
    general = [PUBLISHED_NOTE if any_published(entries) else OURS_NOTE]
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
