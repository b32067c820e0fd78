"""README's headline, from records: phi41 on the circle at J = 128, xi -> u, both noise levels; a table and a figure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spdebench.errors import UserError
from spdebench.files import write_text
from spdebench.paper.catalogue import table
from spdebench.paper.fill import Entry, Group, fill
from spdebench.paper.layout import FINE_REFERENCE
from spdebench.records import Records
from spdebench.records.summary import rough
from spdebench.report.costs import Point, draw_costs, label_costs, point_of
from spdebench.report.markup import md_table
from spdebench.report.numbers import measured, published
from spdebench.report.style import new_figure, save, styled
from spdebench.training.solver_row import SOLVER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OPEN, CLOSE = "<!-- headline -->", "<!-- /headline -->"
FIGURE = Path("docs") / "headline.svg"
COLUMN = "J=128"
LEVELS = {"sigma 0.1": "phi41-periodic", "sigma 1": "phi41-periodic-sigma1"}
TITLE = "Phi41 on the circle, J = 128, xi -> u"
FORMS, EXACT = "phi41-forms", ("linear, exact kernel", "trees, exact kernel")
"""The table with regressions that do not know the scheme of the data; its columns are the noise levels."""


def groups(records: Records) -> dict[str, Group]:
    """Noise level -> the first task of its table."""
    return {level: fill(table(name), records).groups[0] for level, name in LEVELS.items()}


def write(records: Records, readme: Path) -> None:
    """Write the table into README and the figure next to it."""
    try:
        text = readme.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {readme} ({error.strerror})") from None
    new = replaced(text, block(records), str(readme))  # refuses before anything is written
    save(plot_headline(records), readme.parent / FIGURE, about=drawn(records))
    write_text(readme, new)


def replaced(text: str, body: str, name: str = "README") -> str:
    """The text with ``body`` between the two marks."""
    found = re.findall(f"{re.escape(OPEN)}\n.*?{re.escape(CLOSE)}", text, flags=re.DOTALL)
    if len(found) != 1:
        raise UserError(f"{name} must hold the lines {OPEN} and {CLOSE} once, in this order; put them where it goes")
    return text.replace(found[0], f"{OPEN}\n{body}{CLOSE}")


# --- the table ----------------------------------------------------------------------------------------------------
def block(records: Records) -> str:
    """The text between the marks: a table, the figure, and how to read them."""
    known = groups(records)
    header = ["model"]
    for level in known:
        header += [f"{level}: ours", "published", "ms"]
    rows, waiting = [], []
    for row in dict.fromkeys(row for group in known.values() for row in group.rows if row != SOLVER):
        entries = [group.entries.get((row, COLUMN)) for group in known.values()]
        if row == FINE_REFERENCE:
            rows += _exact(records)
        if any(e is not None and e.values for e in entries):
            rows.append([row, *(text for g, e in zip(known.values(), entries, strict=True) for text in _columns(g, e))])
        elif row != FINE_REFERENCE:
            waiting.append(row)
    lines = [
        f"**{TITLE}**: relative L2 on the test part, mean ± s.d. (seeds);",
        f"ms per sample at batch 100 on {_device(records)}.",
        "",
        md_table(header, rows),
        "",
        f"![Error against time of models, baselines and the solver]({FIGURE.as_posix()})",
        "",
        "mean, linear, trees and step have no network; step is not told the equation, its step is fitted to the data.",
        "linear, trees and DLR-Net use the kernel of the scheme that made the",
        "data; on real data that kernel is unknown, and the exact heat kernel is the fair comparison. *solver vs fine",
        "reference* is the distance of the data to the solution with the same noise on a finer grid and step: a model",
        "with a smaller error has fitted the numerical scheme, and its error no longer tells about the SPDE. The",
        "equation has the drift -u^3 of the paper's text; the authors' code has 3u - u^3." + _pending(waiting),
        "All numbers: [docs/results.md](docs/results.md).",
    ]
    return "\n".join(lines) + "\n"


def _exact(records: Records) -> list[list[str]]:
    """Lines of the regressions with the exact kernel, as far as they have runs; their times are of another device."""
    (group,) = fill(table(FORMS), records).groups
    lines = []
    for row in EXACT:
        entries = [group.entries.get((row, level)) for level in LEVELS]
        if all(e is not None and e.values for e in entries):
            lines.append([row, *(text for e in entries if e for text in (measured(e), "", ""))])
    return lines


def _columns(group: Group, entry: Entry | None) -> tuple[str, str, str]:
    if entry is None or not entry.values:
        return "-", "" if entry is None else published(entry), ""
    point = point_of(group, entry.cell.row, [COLUMN])
    return measured(entry), published(entry), "" if point is None or point.time is None else rough(point.time)


def _pending(waiting: Sequence[str]) -> str:
    return f" Not run yet: {', '.join(waiting)}." if waiting else ""


def _device(records: Records) -> str:
    """The devices of all times that are shown."""
    shown = [r for group in groups(records).values() for e in group.column(COLUMN) for r in e.records]
    found = sorted({r.provenance.device or "?" for r in shown if r.inference_ms is not None})
    return " and ".join(found).replace("cuda: ", "") or "no device yet"


# --- the figure ---------------------------------------------------------------------------------------------------
def points(records: Records) -> dict[str, list[Point]]:
    """Noise level -> what is drawn."""
    return {
        level: [p for row in group.rows if (p := point_of(group, row, [COLUMN]))]
        for level, group in groups(records).items()
    }


def drawn(records: Records) -> str:
    """What the figure shows, as text that does not depend on the drawing library."""
    shown = {
        level: [[p.name, *(float(f"{v:.5g}") for v in (p.time or 0.0, *p.values))] for p in found]
        for level, found in points(records).items()
    }
    return json.dumps(shown)


@styled
def plot_headline(records: Records) -> Figure:
    """Error against time, one panel per noise level."""
    known = points(records)
    figure = new_figure(9.0, 3.9, TITLE, "inference time per sample at batch 100;  bars: range over seeds")
    row = list(figure.subplots(1, len(known)))
    for axes, (level, found) in zip(row, known.items(), strict=True):
        draw_costs(axes, found, "relative L2")
        axes.set_title(level)
    figure.draw_without_rendering()
    for axes, found in zip(row, known.values(), strict=True):
        label_costs(axes, found)
    return figure
