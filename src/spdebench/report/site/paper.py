"""Pages of the paper's tables: ours beside the published numbers, every cell with links to its runs, and drawings.

Numbers are written as `spdebench table` writes them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from spdebench.experiments.solver import FINER, SOLVER
from spdebench.models import MODELS
from spdebench.report.numbers import count, heading, is_best, multiple, number, ours, probability, theirs
from spdebench.report.site import charts, words
from spdebench.report.site.board import MAIN
from spdebench.report.site.content import Content
from spdebench.report.site.render import Drawing, Page, Templates, draw

if TYPE_CHECKING:
    from spdebench.experiments.fill import Entry, Filled, Group


def table_pages(content: Content, templates: Templates) -> Iterator[Page]:
    """The list of tables and a page for each."""
    if not content.tables:
        return
    runs = {run.key for run in content.runs}
    names = [f"{words.slug(filled.table.name)}.html" for filled in content.tables]
    listed = list(zip(content.tables, names, strict=True))
    yield templates.render(
        "tables.html", "tables/index.html", "Tables", "Tables and figures", script=True, listed=listed
    )
    for filled, name in listed:
        groups = [_group(filled, group, runs, f"g{k}") for k, group in enumerate(filled.groups)]
        missing = [(command, _names(entries)) for command, entries in filled.missing().items()]
        yield templates.render(
            "table.html", f"tables/{name}", "Tables", heading(filled), script=True, filled=filled, groups=groups,
            missing=missing,
        )  # fmt: skip


def _names(entries: list[Entry]) -> str:
    """Cells in few words: group and row, then their columns."""
    columns: dict[str, list[str]] = {}
    for entry in entries:
        place = ", ".join(word for word in (entry.cell.group, entry.cell.row) if word)
        columns.setdefault(place, []).append(entry.cell.column)
    return "; ".join(": ".join(filter(None, (place, ", ".join(names)))) for place, names in columns.items())


def _group(filled: Filled, group: Group, runs: set[str], prefix: str) -> dict[str, Any]:
    lines = []
    for row in group.rows:
        time = group.inference_ms(row)
        lines.append(
            {
                "name": row,
                "parameters": count(group.parameters(row)) or words.MISSING,
                "time": words.MISSING if time is None else number(time),
                "cells": [_cell(filled, group, row, column, runs) for column in group.columns],
            }
        )
    drawings = [*_published(filled, group, prefix), *_cost(filled, group, prefix)]
    return {"name": group.name, "columns": group.columns, "lines": lines, "charts": drawings}


def _cell(filled: Filled, group: Group, row: str, column: str, runs: set[str]) -> dict[str, Any] | None:
    """Words of one cell; None where the table has none."""
    entry = group.entries.get((row, column))
    if entry is None:
        return None
    best = is_best(filled, group, row, column)
    found = filled.significance.get((group.name, column)) if best else None
    return {
        "ours": ours(entry),
        "published": " ".join(filter(None, (theirs(entry), multiple(entry)))),
        "p": f"{probability(found[0])} against {found[1]}" if found else "",
        "best": best,
        "runs": [key for key in map(words.page_name, entry.digests) if key in runs],
    }


# --- drawings -----------------------------------------------------------------------------------------------------
def _published(filled: Filled, group: Group, prefix: str) -> Iterator[Drawing]:
    """Ours beside the published, if there is anything of ours."""
    pairs = [
        charts.Pair(row, column, entry.cell.published, entry.cell.published_std, entry.mean, entry.std)
        for (row, column), entry in group.entries.items()
        if entry.cell.model != SOLVER
    ]
    if any(pair.ours is not None for pair in pairs):
        figure = charts.plot_published(pairs, group.name or filled.table.title)
        yield draw(figure, f"{prefix}p", "Ours beside the published numbers.")


def _cost(filled: Filled, group: Group, prefix: str) -> Iterator[Drawing]:
    """Error against time, if two rows or more have both."""
    points = [point for row in group.rows if (point := _point(group, row))]
    if len(points) > 1:
        caption = (
            f"Test {MAIN} (geometric mean over the columns) against inference time, for rows that have all columns. "
            f"The solver's error is its distance to a finer solution on the same paths."
        )
        figure = charts.plot_cost(points, MAIN, group.name or filled.table.title)
        yield draw(figure, f"{prefix}c", caption)


def _point(group: Group, row: str) -> charts.Point | None:
    """A row's error and time; of the solver's rows the one that states its error."""
    wanted = [c for c in group.columns if any(e.cell.metric == MAIN for e in _column(group, c))]
    entries = [group.entries[row, c] for c in wanted if (row, c) in group.entries]
    if not entries or len(entries) < len(wanted):
        return None
    model = entries[0].cell.model
    if model == SOLVER and entries[0].cell.part != FINER:
        return None
    like = [r for r in group.rows if any(e.cell.model == model for e in group.row(r))] if model == SOLVER else [row]
    time = next((ms for r in like if (ms := group.inference_ms(r))), None)
    if not time:
        return None
    seeds = min(len(e.values) for e in entries)
    values = [[e.values[k] for e in entries] for k in range(seeds)]
    if not values or not all(math.isfinite(v) and v > 0 for seed in values for v in seed):
        return None
    kind: charts.Kind = "solver" if model == SOLVER else "model" if MODELS[model].trainable else "baseline"
    return charts.Point(
        SOLVER if model == SOLVER else row, tuple(statistics.geometric_mean(seed) for seed in values), kind, time
    )


def _column(group: Group, column: str) -> list[Entry]:
    return [group.entries[row, column] for row in group.rows if (row, column) in group.entries]
