"""The first page: introduction, headline figure, the equations, the best model of each, links and the citation."""

from __future__ import annotations

import re
from importlib import resources
from typing import Any

from spdebench.equations import EQUATIONS
from spdebench.records.summary import MAIN
from spdebench.report import formatting, opening
from spdebench.report.board import Leaderboard, Problem
from spdebench.report.site.content import Content
from spdebench.report.site.film import CAPTION, COMMAND, film
from spdebench.report.site.pictures import equation_picture
from spdebench.report.site.render import Drawing, Page, Templates, draw


def landing_page(content: Content, templates: Templates) -> Page:
    """``index.html``."""
    return templates.render(
        "index.html", "index.html", "Overview", "SPDEBench: learning stochastic PDEs", script=True,
        figure=_headline(content), film=film(), film_caption=CAPTION, film_command=COMMAND,
        equations=_equations(content), best=Leaderboard(_chosen(content.problems)),
        places=content.places, main=MAIN, tables=bool(content.tables), citations=citations(),
        counts={
            "run": len(content.own_runs),
            **({"submission": len(content.submissions)} if content.submissions else {}),
            "model": len({row.first.model for row in content.rows}),
            "problem": len(content.problems),
        },
    )  # fmt: skip


def _headline(content: Content) -> list[Drawing]:
    """README's figure, if these records have something to draw in it."""
    found = opening.dots(content.records) if content.tables else []
    if not any(dot.time for dot in found):
        return []
    caption = (
        f"{opening.TITLE}: relative L² error on unseen samples against inference time of networks (blue; hollow: "
        f"published), baselines without a network (orange) and the solver (green). Down and to the left is better."
    )
    return [draw(opening.plot_opening(found, opening.PALETTES["site"]), "headline", caption)]


def _equations(content: Content) -> list[dict[str, Any]]:
    """Every equation of this installation: picture, formula, and the page of its models."""
    first: dict[str, str] = {}
    for problem in content.problems:
        first.setdefault(problem.equation, content.places[problem.key])
    found = []
    for name in EQUATIONS:
        kind = EQUATIONS[name]
        problems = sum(problem.equation == name for problem in content.problems)
        found.append({
            "name": name, "title": formatting.title(kind.title), "formula": kind.formula, "problems": problems,
            "picture": equation_picture(name), "place": first.get(name, "").partition("#")[0],
        })  # fmt: skip
    return found


def _chosen(problems: list[Problem]) -> list[Problem]:
    """For each equation the problem with most networks; among equals the one with more rows, then the first."""
    found: dict[str, Problem] = {}
    for problem in problems:
        best = found.get(problem.equation)
        if best is None or _size(problem) > _size(best):
            found[problem.equation] = problem
    return list(found.values())


def _size(problem: Problem) -> tuple[int, int]:
    return len(problem.networks), len(problem.rows)


# --- the citation -------------------------------------------------------------------------------------------------
def citations() -> list[dict[str, str]]:
    """The software and the paper, from CITATION.cff: title, authors, note and BibTeX."""
    text = (resources.files("spdebench.report.site") / "static" / "CITATION.cff").read_text(encoding="utf-8")
    software, _, article = text.partition("\nreferences:")
    return [_citation(software, "software", "spdebench"), _citation(article, "article", "spdebench-paper")]


def _citation(part: str, kind: str, key: str) -> dict[str, str]:
    """One entry; CITATION.cff is YAML, of which it uses `key: value` and lists of names."""
    values = dict(re.findall(r'^[ -]*(title|version|license|notes): "?(.*?)"?$', part, flags=re.MULTILINE))
    authors = re.findall(r'^ *- name: "(.*)"$', part, flags=re.MULTILINE)
    known = [f"{name} {values[name]}" for name in ("version", "license") if name in values]
    note = ", ".join([*known, *filter(None, [values.get("notes")])])
    names = " and ".join(f"{{{name}}}" if name.startswith("The ") else name for name in authors)
    lines = [
        f"@{kind}{{{key},",
        f"  title = {{{values['title']}}},",
        f"  author = {{{names}}},",
        f"  note = {{{note}}}",
    ]
    return {"title": values["title"], "authors": ", ".join(authors), "note": note, "bibtex": "\n".join([*lines, "}"])}
