"""README's tables, from records: phi41 on the circle at J = 128, xi -> u, both noise levels; `core_table` and `opening`
have the rest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from spdebench.errors import UserError
from spdebench.files import user_text, write_text
from spdebench.paper.catalogue import table
from spdebench.paper.fill import fill
from spdebench.paper.filled import Entry, Group
from spdebench.paper.layout import FINE_REFERENCE, MORE_ACCURATE
from spdebench.records import Records
from spdebench.records.summary import count, rough
from spdebench.report.core_table import MARKS as core_marks
from spdebench.report.core_table import core_table, shift_tables
from spdebench.report.costs import point_of
from spdebench.report.equation_list import MARKS as equation_marks
from spdebench.report.equation_list import equation_list
from spdebench.report.markup import md, md_table, paragraph
from spdebench.report.numbers import measured, published
from spdebench.report.observation_table import MARKS as law_marks
from spdebench.report.observation_table import observation_tables
from spdebench.report.observation_table import write_figures as write_law_figures
from spdebench.report.opening import FIGURES, opening, write_figures
from spdebench.training.solver_row import SOLVER

OPEN, CLOSE = "<!-- headline -->", "<!-- /headline -->"
FIRST = ("<!-- opening -->", "<!-- /opening -->")
"""Marks around the first screen."""
CORE_PAGE, LAW_PAGE = Path("docs") / "core.md", Path("docs") / "law.md"
"""Below the folder of README; written if they exist."""
COLUMN = "J=128"
LEVELS = {"sigma 0.1": "phi41-periodic", "sigma 1": "phi41-periodic-sigma1"}
TITLE = "Phi41 on the circle, J = 128, xi -> u"


def groups(records: Records) -> dict[str, Group]:
    """The first task of the table of each noise level."""
    return {level: fill(table(name), records).groups[0] for level, name in LEVELS.items()}


def write_pages(records: Records, readme: Path) -> list[Path]:
    """Write the first screen and the tables into README, `CORE_PAGE` and `LAW_PAGE`, and the figures.

    Returns the files. Nothing is written if one of the pages lacks its marks.
    """
    pages = {readme: readme_with_tables(user_text(readme), records, str(readme))}
    if (core := readme.parent / CORE_PAGE).exists():
        pages[core] = core_page(user_text(core), records, str(core))
    if (law := readme.parent / LAW_PAGE).exists():
        pages[law] = law_page(user_text(law), records, str(law))
    write_figures(records, readme.parent)
    of_laws = write_law_figures(records, readme.parent) if law in pages else []
    for path, text in pages.items():
        write_text(path, text)
    return [*pages, *(readme.parent / path for path in FIGURES.values()), *of_laws]


def readme_with_tables(text: str, records: Records, name: str = "README") -> str:
    """README with its generated parts."""
    text = replace_between_marks(text, equation_list(), name, equation_marks)
    text = replace_between_marks(text, core_table(records), name, core_marks)
    return replace_between_marks(
        replace_between_marks(text, opening(records), name, FIRST), headline_table(records), name
    )


def core_page(text: str, records: Records, name: str = "docs/core.md") -> str:
    """The page of the core suite with its leaderboard, and with the shifts of problems that are complete."""
    return replace_between_marks(text, core_table(records) + "\n" + shift_tables(records), name, core_marks)


def law_page(text: str, records: Records, name: str = "docs/law.md") -> str:
    """The page of laws with the tables of skill."""
    return replace_between_marks(text, observation_tables(records), name, law_marks)


def replace_between_marks(text: str, body: str, name: str = "README", marks: tuple[str, str] = (OPEN, CLOSE)) -> str:
    """The text with ``body`` between the two marks."""
    first, last = marks
    found = re.findall(f"{re.escape(first)}\n.*?{re.escape(last)}", text, flags=re.DOTALL)
    if len(found) != 1:
        raise UserError(f"{name} must hold the lines {first} and {last} once, in this order; put them where it goes")
    return text.replace(found[0], f"{first}\n{body}{last}")


# --- the table ----------------------------------------------------------------------------------------------------
def headline_table(records: Records) -> str:
    """The text between the marks: a table, and how to read it."""
    known = groups(records)
    header = ["model"]
    for level in known:
        header += [f"{level}: ours", "published", "ms", "parameters"]
    rows, waiting = [], []
    for row in dict.fromkeys(row for group in known.values() for row in group.rows if row != SOLVER):
        entries = [group.entries.get((row, COLUMN)) for group in known.values()]
        if any(e is not None and e.values for e in entries):
            rows.append([row, *(text for g, e in zip(known.values(), entries, strict=True) for text in _columns(g, e))])
        elif row != FINE_REFERENCE:
            waiting.append(row)
    lines = [
        f"**{TITLE}**: relative L2 on the test part, mean ± s.d. (seeds);",
        f"ms per sample at batch 100 on {_device(records)}. The paper uses networks of different size for each sigma.",
        "",
        md_table(header, rows),
        "",
        paragraph(
            "mean, linear, trees and step have no network; step fits one time step to the data without knowing the "
            "equation. linear, trees, DLR-Net and NORS integrate with the exact heat kernel. Rows with the "
            "*generator's kernel* use the linear part of the numerical scheme that generated the data, which is "
            f"unknown for real data; these rows are not ranked. *{FINE_REFERENCE}* is the distance of the data to "
            f"{MORE_ACCURATE}. A model with a smaller error has fitted the numerical scheme, and its error no longer "
            "tells us about the SPDE. The equation has the drift -u^3 of the paper's text; the authors' code has "
            "3u - u^3." + _pending(waiting)
        ),
        "All numbers: [docs/results.md](docs/results.md).",
    ]
    return "\n".join(lines) + "\n"


def _columns(group: Group, entry: Entry | None) -> tuple[str, str, str, str]:
    """Ours, published, ms and parameters as text."""
    if entry is None or not entry.values:
        return "-", "" if entry is None else published(entry), "", ""
    point = point_of(group, entry.cell.row, [COLUMN])
    time = "" if point is None or point.time is None else rough(point.time)
    return measured(entry), published(entry), time, count(entry.parameters)


def _pending(waiting: Sequence[str]) -> str:
    return f" Not run yet: {', '.join(waiting)}." if waiting else ""


def _device(records: Records) -> str:
    """The devices of all times that are shown."""
    shown = [r for group in groups(records).values() for e in group.column(COLUMN) for r in e.records]
    found = sorted({r.provenance.device or "?" for r in shown if r.inference_ms is not None})
    return md(" and ".join(found).replace("cuda: ", "")) or "no device yet"
