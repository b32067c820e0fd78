"""Docstrings as Markdown. They are plain text: paragraphs, indented blocks, lists, and code in backticks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from spdebench.report.handbook.formula import display

EMPHASIS = re.compile(r"(?<!\S)\*(\w[^*]*[\w.])\*(?=[\s.,:;)]|$)")
CODE = re.compile(r"(``.+?``|`[^`]+`)")
Kind = Literal["text", "item", "block"]


def blocks(text: str) -> Iterator[tuple[Kind, str]]:
    """(kind, text) of each paragraph, item of a list and indented block; those of prose are one line each."""
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")) if text.strip() else ():
        current: list[str] = []
        for line in [*paragraph.splitlines(), None]:
            if line is None or (current and _kind(line, current) is not None):
                yield _block(current)
                current = []
            if line is not None:
                current.append(line)


def _kind(line: str, current: list[str]) -> Kind | None:
    """The kind of a block that begins with this line; None if the line continues the current one."""
    kind, _ = _block(current)
    if re.match(r"[-*] ", line):
        return "item"
    indented = line.startswith("  ")
    if kind == "item":
        return None if indented else "text"
    return None if indented == (kind == "block") else ("block" if indented else "text")


def _block(lines: list[str]) -> tuple[Kind, str]:
    """The kind and the text of a block with these lines."""
    if re.match(r"[-*] ", lines[0]):
        return "item", " ".join(" ".join(lines)[2:].split())
    if lines[0].startswith("  "):
        return "block", "\n".join(lines)
    return "text", " ".join(" ".join(lines).split())


def markdown(text: str, *, formulas: bool = False) -> str:
    """A docstring as Markdown; with ``formulas`` its first indented block is shown as a formula."""
    return joined(blocks(text), formulas=formulas)


def joined(found: Iterable[tuple[Kind, str]], *, formulas: bool = False) -> str:
    """Blocks as Markdown."""
    out: list[str] = []
    last: Kind | None = None
    for kind, content in found:
        if kind == "block" and formulas:
            out.append("$$\n" + display(re.sub(r"\n\s*", "   ", content.strip())) + "\n$$")
            formulas = False
        elif kind == "block":
            out.append("```text\n" + content + "\n```")
        elif kind == "item" and last == "item":
            out[-1] += f"\n- {escaped(content)}"
        else:
            out.append(f"- {escaped(content)}" if kind == "item" else escaped(content))
        last = kind
    return "\n\n".join(out)


def escaped(line: str) -> str:
    """One line of plain text for Markdown: outside of code only *emphasis* stays, all other signs are escaped."""
    return "".join(f"`{p.strip('`')}`" if i % 2 else _plain(p) for i, p in enumerate(CODE.split(line)))


def _plain(text: str) -> str:
    """Text without code for Markdown."""
    parts = EMPHASIS.split(text)
    return "".join(
        f"*{part}*" if i % 2 else re.sub(r"([\\*_<|$\[\]#{}])", r"\\\1", part) for i, part in enumerate(parts)
    )
