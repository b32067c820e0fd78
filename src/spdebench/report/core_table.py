"""The core leaderboard in short, from records: README's table, and the tables of ``docs/core.md``."""

from __future__ import annotations

import math
from collections.abc import Sequence

from spdebench.paper.catalogue import table
from spdebench.paper.fill import fill
from spdebench.paper.filled import Entry, Filled, Group
from spdebench.records import Records
from spdebench.records.record import TEST
from spdebench.records.summary import MISSING, count, mean_and_std
from spdebench.registry import command
from spdebench.report.markup import md_table, paragraph
from spdebench.report.numbers import is_best
from spdebench.training.solver_row import SOLVER

MARKS = ("<!-- core -->", "<!-- /core -->")
"""Lines of README, and of ``docs/core.md``, around the tables."""


def core_table(records: Records) -> str:
    """Models by problem on the test part: problems with a record, rows in the order of their error on the first."""
    filled, groups = _known(records)
    first = groups[0] if groups else None
    rows = sorted(dict.fromkeys(row for g in groups for row in _models(g)), key=lambda row: _error(first, row))
    lines = [[row, *(_text(filled, g, row, TEST) for g in groups)] for row in rows]
    return "\n\n".join([md_table(["model", *(f"`{g.name}`" for g in groups)], lines), _remarks_below(filled)]) + "\n"


def shift_tables(records: Records) -> str:
    """For every problem whose test column is complete: its models on the test part and on shifted data."""
    filled, groups = _known(records)
    blocks = []
    for group in groups:
        if all(_tested(group, row).values for row in _models(group)):
            columns = [c for c in group.columns if any((row, c) in group.entries for row in _models(group))]
            rows = sorted(_models(group), key=lambda row: _error(group, row))
            lines = [
                [row, count(group.parameters(row)), *(_text(filled, group, row, c) for c in columns)] for row in rows
            ]
            blocks += [f"`{group.name}`, all models:", md_table(["model", "parameters", *columns], lines)]
    return "".join(f"{block}\n\n" for block in blocks)


def _known(records: Records) -> tuple[Filled, list[Group]]:
    """The table, and those of its problems of which a model has a record."""
    filled = fill(table("core"), records)
    return filled, [g for g in filled.groups if any(_tested(g, row).values for row in _models(g))]


def _models(group: Group) -> list[str]:
    return [row for row in group.rows if _tested(group, row).cell.model != SOLVER]


def _tested(group: Group, row: str) -> Entry:
    return group.entries[row, TEST]


def _error(group: Group | None, row: str) -> float:
    """The error by which rows are sorted; those without a finite one come last."""
    entry = None if group is None else group.entries.get((row, TEST))
    error = entry.mean if entry else None
    return math.inf if error is None or not math.isfinite(error) else error


def _text(filled: Filled, group: Group, row: str, column: str) -> str:
    """A number, in bold if it is the smallest of a column without gaps; empty where the model cannot predict."""
    entry = group.entries.get((row, column))
    if entry is None:
        return ""
    if entry.mean is None:
        return MISSING
    whole = all(e.values for e in group.column(column) if e.cell.model != SOLVER)
    text = mean_and_std(entry.mean, entry.std)
    return f"**{text}**" if whole and is_best(filled, group, row, column) else text


def _remarks_below(filled: Filled) -> str:
    """How many seeds the numbers have, which cells are missing, and the command that fills them."""
    entries = [e for e in filled.entries if e.cell.model != SOLVER and e.cell.part == TEST]
    seeds = sorted({len(e.values) for e in entries if e.values})
    words = f"Relative L2 error on the test part, {_seeds(seeds)}. Bold: the smallest error of a complete column."
    if len({e.cell.row for e in entries}) * len({e.cell.group for e in entries}) > len(entries):
        words += " Empty: the model does not work in two dimensions."
    gaps: dict[str, list[str]] = {}
    for entry in entries:
        gaps.setdefault(entry.cell.group, []).extend([] if entry.values else [entry.cell.row])
    missing = sum(map(len, gaps.values()))
    if not missing:
        return paragraph(words)
    every = {name: sum(e.cell.group == name for e in entries) for name in gaps}
    named = ", ".join(f"`{name}` {_rows(rows, every[name])}" for name, rows in gaps.items() if rows)
    words += f" {missing} of {len(entries)} cells have not been run yet: {named}. This command runs them:"
    return f"{paragraph(words)}\n\n    {command('table core --run --device cuda --seeds 1')}"


def _rows(rows: Sequence[str], every: int) -> str:
    return "all" if len(rows) == every else f"{len(rows)} of {every}"


def _seeds(found: Sequence[int]) -> str:
    """The numbers of training seeds in words, such as "1 to 3 training seeds"."""
    if len(found) > 1:
        return f"{found[0]} to {found[-1]} training seeds"
    return f"{found[0]} training seed{'s' * (found[0] != 1)}" if found else "no run yet"
