"""Sphinx extension: table cells with short texts, such as numbers, are not broken over lines (site.css: td.short)."""

from __future__ import annotations

from typing import Any

SHORT = 40


def mark_short_cells(app: Any, doctree: Any) -> None:
    from docutils import nodes

    for entry in doctree.findall(nodes.entry):
        if len(entry.astext()) <= SHORT:
            entry["classes"].append("short")


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-read", mark_short_cells)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
