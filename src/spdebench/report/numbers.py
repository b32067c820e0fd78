"""The entries of a filled table as text, and the remarks beneath it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from spdebench.paper.fill import ColumnNumbers, Entry, Filled, Group
from spdebench.records.summary import MAIN, MISSING, mean_and_std, number, one_digit, rough

NOT_IN_THE_PAPER = "not in the paper"
"""The source of a table without published numbers."""


def measured(entry: Entry) -> str:
    """Our number: mean±s.d. (number of seeds)."""
    if entry.mean is None:
        return entry.no_number or MISSING
    return f"{mean_and_std(entry.mean, entry.std)} ({entry.seeds_done})"


def seeds_text(entries: Iterable[Entry], *, spread: bool = True) -> str:
    """A sentence on the number of seeds: ``One training seed.``, or the mean over up to n seeds.

    ``spread``: standard deviations are shown, too.
    """
    most = max((e.seeds_done for e in entries), default=0)
    shown = "Mean ± standard deviation" if spread else "Mean"
    return f"{shown} over up to {most} training seeds." if most > 1 else "One training seed."


def published(entry: Entry) -> str:
    """The paper's number, with the digits that it prints; empty if there is none."""
    cell = entry.cell
    if cell.published is None:
        return ""
    return f"{cell.published:g}" + ("" if cell.published_std is None else f"±{one_digit(cell.published_std)}")


def multiple(entry: Entry) -> str:
    """Our number as a multiple of the published one: x1.2; empty if one is missing or not finite."""
    ratio = entry.ratio
    return "" if ratio is None or not math.isfinite(ratio) else f"x{rough(ratio, 3)}"


def heading(filled: Filled) -> str:
    """The title of a table, with its edition if that is not the paper's."""
    edition = "" if filled.edition == "paper" or filled.table.edition else f", edition {filled.edition}"
    return f"{filled.table.title}{edition}"


def source(filled: Filled) -> str:
    """Where the published numbers of a table are from."""
    return filled.table.source if filled.table.source == NOT_IN_THE_PAPER else f"paper: {filled.table.source}"


def remarks(filled: Filled) -> list[tuple[str, str]]:
    """Lines below a table, each with a command or an empty text: notes, the device of the times, missing runs."""
    lines = [(note, "") for note in filled.notes]
    if filled.devices:
        lines.append((f"ms: inference time per sample at {filled.times_text}.", ""))
    lines += [("Drawn by:", command) for command in filled.table.draw]
    for command, entries in filled.missing().items():
        runs = len({r.digest for e in entries for r in e.cell.runs if r.digest not in e.digests})
        cells = first_few((e.cell.label for e in entries), 2, "cell")
        lines.append((f"Missing {runs} run{'s' * (runs != 1)} in {cells}:", command))
    return lines


def first_few(names: Iterable[str], shown: int, noun: str = "") -> str:
    """The first ``shown`` different names, and how many more there are: ``fno; gt and 3 more cells``."""
    found = list(dict.fromkeys(names))
    left = len(found) - shown
    others = f" and {left} more{f' {noun}' if noun else ''}{'s' if noun and left > 1 else ''}" if left > 0 else ""
    return "; ".join(found[:shown]) + others


def is_best(filled: Filled, group: Group, row: str, column: str) -> bool:
    return row in filled.best.get((group.name, column), ())


def problem_lines(group: Group) -> list[tuple[str, list[str]]]:
    """(name, a text for each column) of floor, nonlinearity and identifiability; empty if no column has one."""
    found = [group.numbers(column) for column in group.columns]
    lines = [(f.name, [getattr(each, f.name) for each in found]) for f in dataclasses.fields(ColumnNumbers)]
    if all(value is None for _, values in lines for value in values):
        return []
    shown = [any(e.cell.metric == MAIN for e in group.column(column)) for column in group.columns]
    return [(name, [number(v) if use else "" for v, use in zip(values, shown, strict=True)]) for name, values in lines]
