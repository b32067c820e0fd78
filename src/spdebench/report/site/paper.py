"""Pages of the paper's tables: our numbers next to the published ones, links to their runs, and drawings.

Numbers are written as `spdebench table` writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from spdebench.errors import UserError
from spdebench.records.summary import MAIN, count, number, probability
from spdebench.report import formatting
from spdebench.report.board.shown import ShownRun
from spdebench.report.costs import plot_cost, point_of
from spdebench.report.numbers import heading, is_best, measured, multiple, problem_lines, published
from spdebench.report.paper_figures import FIGURES, Missing
from spdebench.report.site import charts
from spdebench.report.site.content import Content
from spdebench.report.site.render import Drawing, Page, Templates, draw
from spdebench.training.solver_row import SOLVER

if TYPE_CHECKING:
    from spdebench.paper.filled import Entry, Filled, Group


def table_pages(content: Content, templates: Templates) -> Iterator[Page]:
    """The list of tables and a page for each."""
    if not content.tables:
        return
    runs = {run.key: run for run in content.runs}
    names = [f"{formatting.slug(filled.table.name)}.html" for filled in content.tables]
    listed = list(zip(content.tables, names, strict=True))
    yield templates.render(
        "tables.html", "tables/index.html", "Tables", "Tables and figures", script=True, listed=listed
    )
    for filled, name in listed:
        groups = [_group(filled, group, runs, f"g{k}") for k, group in enumerate(filled.groups)]
        missing = [(command, _names(entries)) for command, entries in filled.missing().items()]
        figure, lacking = _figure(filled)
        published = any(entry.cell.published is not None for entry in filled.entries)
        yield templates.render(
            "table.html", f"tables/{name}", "Tables", heading(filled), script=True, filled=filled, groups=groups,
            missing=missing, figure=figure, lacking=lacking, published=published,
        )  # fmt: skip


def _names(entries: list[Entry]) -> str:
    """Cells in few words: group and row, then their columns."""
    columns: dict[str, list[str]] = {}
    for entry in entries:
        place = ", ".join(word for word in (entry.cell.group, entry.cell.row) if word)
        columns.setdefault(place, []).append(entry.cell.column)
    return "; ".join(": ".join(filter(None, (place, ", ".join(names)))) for place, names in columns.items())


def _group(filled: Filled, group: Group, runs: Mapping[str, ShownRun], prefix: str) -> dict[str, Any]:
    """The content of one group for the template: lines of text, drawings and reference errors."""
    lines = []
    for row in group.rows:
        time = group.inference_ms(row)
        lines.append(
            {
                "name": row,
                "parameters": count(group.parameters(row)) or formatting.MISSING,
                "time": formatting.MISSING if time is None else number(time),
                "cells": [_cell(filled, group, row, column, runs) for column in group.columns],
            }
        )
    drawings = []
    if filled.table.kind == "table":  # a figure has its own drawing
        drawings = [*_published(filled, group, prefix), *_cost(filled, group, prefix)]
    numbers = problem_lines(group)
    return {"name": group.name, "columns": group.columns, "lines": lines, "charts": drawings, "numbers": numbers}


def _cell(filled: Filled, group: Group, row: str, column: str, runs: Mapping[str, ShownRun]) -> dict[str, Any] | None:
    """The texts of one cell; None if the table has no such cell."""
    entry = group.entries.get((row, column))
    if entry is None:
        return None
    best = is_best(filled, group, row, column)
    found = filled.significance.get((group.name, column)) if best else None
    return {
        "ours": measured(entry),
        "published": " ".join(filter(None, (published(entry), multiple(entry)))),
        "p": f"{probability(found[0])} against {found[1]}" if found else "",
        "best": best,
        "runs": [runs[key] for key in map(formatting.page_name, entry.digests) if key in runs],
    }


# --- drawings -----------------------------------------------------------------------------------------------------
def _figure(filled: Filled) -> tuple[list[Drawing], Missing]:
    """The paper's own figure of these runs, if it can be drawn, and its missing runs."""
    drawer = FIGURES.get(filled.table.name)
    if drawer is None:
        return [], ()
    try:
        drawn = drawer(filled)
    except UserError as error:  # a record that does not fit its run does not stop the other pages
        return [], ((str(error), f"spdebench table {filled.table.name} --run"),)
    return ([] if drawn.figure is None else [draw(drawn.figure, "figure", drawn.caption)]), drawn.missing


def _published(filled: Filled, group: Group, prefix: str) -> Iterator[Drawing]:
    """Our numbers and the published ones, if there are any of both."""
    pairs = [
        charts.PublishedPair(row, column, entry.cell.published, entry.cell.published_std, entry.mean, entry.std)
        for (row, column), entry in group.entries.items()
        if entry.cell.model != SOLVER
    ]
    if any(pair.measured is not None for pair in pairs) and any(pair.published is not None for pair in pairs):
        figure = charts.plot_published(pairs, group.name or filled.table.title)
        yield draw(figure, f"{prefix}p", "Our numbers and the published ones.")


def _cost(filled: Filled, group: Group, prefix: str) -> Iterator[Drawing]:
    """Error against time over the columns that most rows have, if at least two rows have both."""
    rows = {c: sum(1 for e in group.column(c) if e.values and e.cell.metric == MAIN) for c in group.columns}
    columns = [c for c, count in rows.items() if count and count == max(rows.values())]
    points = [point for row in group.rows if (point := point_of(group, row, columns))]
    if len(points) > 1:
        mean = "" if len(columns) == 1 else ", geometric mean"
        caption = (
            f"Test {MAIN} ({', '.join(columns)}{mean}) against inference time. The error of the solver is the distance "
            "of the data to a more accurate solution with the same noise."
        )
        figure = plot_cost(points, MAIN, group.name or filled.table.title)
        yield draw(figure, f"{prefix}c", caption)
