"""Small tables for people: aligned text, and escaped HTML for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from spdebench.errors import one_line

TableRows = Sequence[Mapping[str, Any]]


def cell(value: Any) -> str:
    """A value as text: numbers to four digits, ``-`` for None."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else one_line(str(value))


def aligned(rows: TableRows) -> list[str]:
    """Rows with the same keys as aligned lines of text, below a header and a line."""
    if not rows:
        return []
    lines = [[cell(value) for value in row.values()] for row in rows]
    header = [one_line(key) for key in rows[0]]
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]
    shown = [header, ["-" * w for w in widths], *lines]
    return ["  ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)).rstrip() for line in shown]


def html_table(title: str, rows: TableRows) -> str:
    """Rows with the same keys as a table in HTML, below a title."""
    lines = ["".join(f"<td>{escape(cell(value))}</td>" for value in row.values()) for row in rows]
    header = "".join(f"<th>{escape(key)}</th>" for key in (rows[0] if rows else ()))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><caption>{escape(title)}</caption><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


class Displayed:
    """An object that shows itself as a title and a small table: ``repr`` as text, in notebooks as HTML."""

    def overview(self) -> tuple[str, TableRows]:
        """The title and the rows of the table; they must be cheap to compute."""
        raise NotImplementedError

    def __repr__(self) -> str:
        title, rows = self.overview()
        return "\n".join([title, *(f"  {line}" for line in aligned(rows))])

    def _repr_html_(self) -> str:
        return html_table(*self.overview())


def facts(**values: Any) -> TableRows:
    """Rows of two columns, one for each fact that is not None."""
    return [{"field": key.replace("_", " "), "value": value} for key, value in values.items() if value is not None]
