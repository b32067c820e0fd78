"""Every page of the site, and the leaderboard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spdebench.metrics import LAW_METRICS, METRICS, metric_title
from spdebench.records.summary import MAIN
from spdebench.report.board import Leaderboard
from spdebench.report.site.content import Content
from spdebench.report.site.datasets import dataset_pages
from spdebench.report.site.landing import landing_page
from spdebench.report.site.paper import table_pages
from spdebench.report.site.render import Page, Templates
from spdebench.report.site.runs import run_pages
from spdebench.report.site.submissions import submission_pages


def pages(content: Content) -> Iterator[Page]:
    """Every page of the site."""
    templates = Templates(tables=bool(content.tables))
    yield landing_page(content, templates)
    yield from _boards(content, templates)
    yield from table_pages(content, templates)
    yield from dataset_pages(content, templates)
    yield from submission_pages(content, templates)
    yield from run_pages(content, templates)


def _boards(content: Content, templates: Templates) -> Iterator[Page]:
    """All problems with their models on one page or, where they are too many, the best of each problem and a page for
    each equation."""
    whole = Leaderboard(content.problems)
    yield templates.render(
        "boards.html", "boards/index.html", "Leaderboard", "Leaderboard", script=True, whole=whole, main=MAIN,
        pages=content.boards, places=content.places, explained=_explain([MAIN, *whole.metrics]),
    )  # fmt: skip
    for page in content.boards:
        board = Leaderboard(page.problems)
        title = f"Leaderboard: {page.name}"
        yield templates.render("board.html", page.path, "Leaderboard", title, script=True, board=board, main=MAIN)


def _explain(metrics: Sequence[str]) -> dict[str, str]:
    """Title and formula of each metric."""
    known = [name for name in metrics if name.partition("(")[0] in METRICS]
    formulas = {name: METRICS[name.partition("(")[0]].formula().partition("\n\n")[0] for name in known}
    formulas |= {name: LAW_METRICS[name].formula for name in metrics if name in LAW_METRICS}
    return {name: f"{metric_title(name)}: {formula}" for name, formula in formulas.items()}
