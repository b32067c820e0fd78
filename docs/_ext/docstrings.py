"""Sphinx extension: our docstrings are plain text with `code` in backticks; autodoc expects reStructuredText.

A paragraph stays a paragraph, an indented block is shown as it is written, and ``- item`` or ``* item`` begins a list.
Signs that mean something in reStructuredText (``*``, ``|``, ``_`` at the end of a word) are escaped outside of code.
"""

from __future__ import annotations

import re
from typing import Any

CODE = re.compile(r"(``.+?``|`[^`]+`)")


def text_to_rst(line: str) -> str:
    """One line of plain text: code in double backticks, all else without markup."""
    parts = CODE.split(line)
    return "".join(f"``{p.strip('`')}``" if i % 2 else re.sub(r"([*|\\`_])", r"\\\1", p) for i, p in enumerate(parts))


def to_rst(lines: list[str]) -> list[str]:
    """A docstring as reStructuredText."""
    out: list[str] = []
    paragraph: list[str] = []

    def flush() -> None:
        if paragraph:
            text = "\n".join(paragraph)
            first = paragraph[0]
            if first.startswith("    ") or (first.startswith("  ") and not re.match(r"\s*[-*] ", first)):
                out.extend(["::", "", *("    " + line for line in paragraph), ""])
            else:
                out.extend([*_prose(text), ""])
            paragraph.clear()

    for line in lines:
        if line.strip() and not (paragraph and _begins_block(line, paragraph)):
            paragraph.append(line.rstrip())
        else:
            flush()
            if line.strip():
                paragraph.append(line.rstrip())
    flush()
    return out


def _begins_block(line: str, paragraph: list[str]) -> bool:
    """Whether the kind of text changes between two lines without an empty one: prose to an indented block, or back."""
    item = bool(re.match(r"[-*] ", paragraph[0]))
    return line.startswith("  ") != paragraph[0].startswith("  ") and not item


def _prose(text: str) -> list[str]:
    """Prose or a list: code may run over the end of a line, so the lines of a paragraph or an item are joined."""
    items = re.split(r"\n(?=[-*] )", text)
    if not re.match(r"[-*] ", items[0]):
        return [text_to_rst(" ".join(text.split()))]
    out = []
    for item in items:
        out += [f"* {text_to_rst(' '.join(item[2:].split()))}"]
    return out


def setup(app: Any) -> dict[str, bool]:
    def rewrite(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
        lines[:] = to_rst(lines)

    app.connect("autodoc-process-docstring", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
