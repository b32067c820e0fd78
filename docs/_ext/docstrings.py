"""Sphinx extension: our docstrings are plain text with `code` in backticks; autodoc expects reStructuredText.

A paragraph stays a paragraph, an indented block is shown as it is written, and ``- item`` or ``* item`` begins a list.
Signs that mean something in reStructuredText are escaped outside of code.
"""

from __future__ import annotations

import re
from typing import Any

from spdebench.report.handbook.prose import CODE, blocks


def text_to_rst(line: str) -> str:
    """One line of plain text: code in double backticks, all else without markup."""
    out = ""
    for i, part in enumerate(CODE.split(line)):
        shown = f"``{part.strip('`')}``" if i % 2 else re.sub(r"([*|\\`_])", r"\\\1", part)
        apart = out and shown and ((i % 2 and out[-1].isalnum()) or (not i % 2 and shown[0].isalnum()))
        out += ("\\ " if apart else "") + shown
    return out


def to_rst(lines: list[str]) -> list[str]:
    """A docstring as reStructuredText."""
    out: list[str] = []
    for kind, content in blocks("\n".join(lines)):
        if kind == "block":
            out += ["::", "", *(f"    {line}" for line in content.splitlines()), ""]
        else:
            out += [f"* {text_to_rst(content)}" if kind == "item" else text_to_rst(content), ""]
    return out


def setup(app: Any) -> dict[str, bool]:
    def rewrite(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
        lines[:] = to_rst(lines)

    app.connect("autodoc-process-docstring", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
