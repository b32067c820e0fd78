"""Every page of the site, and the leaderboard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spdebench.metrics import METRICS
from spdebench.records.summary import MAIN
from spdebench.report.site import formatting
from spdebench.report.site.board import ROWS, BoardRow, Leaderboard
from spdebench.report.site.content import Content
from spdebench.report.site.datasets import dataset_pages
from spdebench.report.site.paper import table_pages
from spdebench.report.site.render import Page, Templates
from spdebench.report.site.runs import run_pages


def pages(content: Content) -> Iterator[Page]:
    """Every page of the site."""
    templates = Templates(tables=bool(content.tables))
    yield from _boards(content, templates)
    yield from table_pages(content, templates)
    yield from dataset_pages(content, templates)
    yield from run_pages(content, templates)


# --- leaderboard --------------------------------------------------------------------------------------------------
def _boards(content: Content, templates: Templates) -> Iterator[Page]:
    """One board on the first page, or, when it grows too long, one for each equation and the best of each problem."""
    rows = content.rows
    problems: dict[str, list[BoardRow]] = {}
    for row in rows:
        problems.setdefault(row.first.problem, []).append(row)
    common = {
        "rows": len(rows),
        "runs": len(content.runs),
        "models": len({row.first.model for row in rows}),
        "problems": len(problems),
        "explained": _explain(Leaderboard(rows).metrics),
    }
    if len(rows) <= ROWS:
        yield templates.render(
            "index.html", "index.html", "Leaderboard", "Leaderboard", script=True, board=Leaderboard(rows), **common
        )
        return
    parts = list(_split(rows))
    where = {row.first.problem: path for _, path, part in parts for row in part}
    summary = [(_winner(each), len(each), where[problem]) for problem, each in problems.items()]
    everything = Leaderboard(rows)
    yield templates.render(
        "index.html", "index.html", "Leaderboard", "Leaderboard", script=True, board=None, main=MAIN, summary=summary,
        pages=[(name, path) for name, path, _ in parts], equations=everything.equations, tasks=everything.tasks,
        **common,
    )  # fmt: skip
    for name, path, part in parts:
        yield templates.render(
            "board.html", path, "Leaderboard", f"Leaderboard: {name}", script=True, board=Leaderboard(part)
        )


def _split(rows: Sequence[BoardRow]) -> Iterator[tuple[str, str, list[BoardRow]]]:
    """(name, path, rows) of boards for one equation each, in pieces of at most `ROWS`."""
    for equation in dict.fromkeys(row.equation for row in rows):
        here = [row for row in rows if row.equation == equation]
        count = -(-len(here) // ROWS)
        for k in range(count):
            part = here[k * ROWS : (k + 1) * ROWS]
            name = equation if count == 1 else f"{equation}, part {k + 1} of {count}"
            yield name, f"boards/{formatting.slug(equation)}{f'-{k + 1}' if k else ''}.html", part


def _winner(rows: Sequence[BoardRow]) -> BoardRow:
    return next((row for row in rows if MAIN in row.best), rows[0])


def _explain(metrics: Sequence[str]) -> dict[str, str]:
    """The first lines of the metrics' own descriptions."""
    known = [name for name in metrics if name.partition("(")[0] in METRICS]
    return {name: METRICS[name.partition("(")[0]].formula().partition("\n\n")[0] for name in known}
