"""Pages of the documentation site that are computed from the registries and the run records: equations and models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from spdebench.paper.catalogue import TABLES
from spdebench.paper.fill import fill
from spdebench.records import Records
from spdebench.report.handbook.equation_pages import Law, equation_index, equation_page, own_equations
from spdebench.report.handbook.model_pages import model_index, model_page, own_models

__all__ = ["Law", "own_equations", "own_models", "page_names", "pages"]


def page_names() -> list[str]:
    """The names of all pages, such as ``equations/phi41.md``."""
    equations, models = ("index", *own_equations()), ("index", *own_models())
    return [*(f"equations/{name}.md" for name in equations), *(f"models/{name}.md" for name in models)]


def pages(
    records: Records, laws: Mapping[str, Sequence[Law]], pictures: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[str, str]]:
    """(name, Markdown) of each page.

    ``laws``: the laws that are tested, by equation. ``pictures``: the files of its light and dark picture, by equation.
    """
    tables = [fill(table, records) for table in TABLES if table.kind == "table"]
    yield "equations/index.md", equation_index()
    for name in own_equations():
        yield f"equations/{name}.md", equation_page(name, tables, laws.get(name, ()), pictures.get(name, {}))
    yield "models/index.md", model_index()
    for name in own_models():
        yield f"models/{name}.md", model_page(name, tables)
