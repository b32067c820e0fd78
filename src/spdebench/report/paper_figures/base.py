"""Common parts of the paper's figures: their arguments, their result, and the colours of models."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spdebench.paper.filled import Entry, Filled
from spdebench.report.numbers import first_few
from spdebench.report.style import BLUE, GREEN, GREY, ORANGE, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PINK, AMBER, SKY = "#cc79a7", "#e69f00", "#56b4e9"  # Okabe and Ito's, as those of the common style
TITLE = 110  # the most characters of a figure's title
LINE_STYLES: dict[str, tuple[str, str]] = {
    "nspde": (BLUE, "-"),
    "dlr-net": (ORANGE, "-"),
    "fno": (GREEN, "-"),
    "nors": (PINK, "-"),
    "gt": (AMBER, "-"),
    "wno": (SKY, "-"),
    "deeponet": (GREY, "-"),
    "ncde": (BLUE, "--"),
    "nrde": (ORANGE, "--"),
    "ncde-fno": (GREEN, "--"),
    "nspde-s": (PINK, "--"),
    "flow-fno": (AMBER, "--"),
}
"""Colour and line of each model, the same in every figure."""


def line_style(model: str) -> dict[str, Any]:
    """Options of a model's lines."""
    colour, line = LINE_STYLES.get(model, (GREY, ":"))
    return {"color": colour, "linestyle": line}


Missing = tuple[tuple[str, str], ...]
"""The missing entries of a figure as text, each with the command that makes their runs."""


@dataclass(frozen=True)
class Drawn:
    """A figure with all entries that could be drawn (None if there are none), and the missing entries."""

    figure: Figure | None
    missing: Missing
    caption: str


Drawer = Callable[[Filled], Drawn]


def not_shown(names: Iterable[str]) -> str:
    """A sentence for the remark of a figure: what is not in it because runs are missing; empty if nothing is."""
    found = "; ".join(dict.fromkeys(names))
    return f"  No complete runs yet: {plain(found, 400)}." if found else ""


def lacking(entries: Iterable[Entry]) -> Missing:
    """The entries that a figure cannot show, with the commands that make their runs; the same row is named once."""
    found: dict[str, dict[str, None]] = {}
    for entry in entries:
        name = ", ".join(word for word in (entry.cell.group, entry.cell.row) if word)
        found.setdefault(entry.command, {})[name] = None
    return tuple((first_few(names, 3), command) for command, names in found.items())
