"""How numbers of a table are written, and what is said beneath it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from spdebench.paper.fill import Entry, Filled, Group


def number(value: float | None) -> str:
    """Three digits: 0.00312, 12.1, 3.1e-07."""
    if value is None:
        return "-"
    if not math.isfinite(value):
        return str(value)
    if value == 0 or 1e-4 <= abs(value) < 1e4:
        digits = 2 if value == 0 else max(0, 2 - math.floor(math.log10(abs(value))))
        return f"{value:.{digits}f}"
    return f"{value:.1e}"


def short(value: float) -> str:
    """One digit, as a spread needs: 2e-5."""
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def count(value: int | None) -> str:
    """3283457 -> 3.28M."""
    if not value:
        return ""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return str(value)


def ours(entry: Entry) -> str:
    if entry.mean is None:
        return "-"
    spread = "" if entry.std is None else f"±{short(entry.std)}"
    return f"{number(entry.mean)}{spread} ({entry.seeds_done})"


def theirs(entry: Entry) -> str:
    cell = entry.cell
    if cell.published is None:
        return ""
    return f"{cell.published:g}" + ("" if cell.published_std is None else f"±{short(cell.published_std)}")


def multiple(entry: Entry) -> str:
    return "" if entry.ratio is None else f"x{rough(entry.ratio, 3)}"


def rough(value: float, digits: int = 2) -> str:
    """So many digits, as a measured time has: 0.031, 7.5, 620."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    return f"{float(f'{value:.{digits - 1}e}'):.10g}"


def probability(p: float) -> str:
    return "p<0.001" if p < 1e-3 else f"p={p:.2g}"


def heading(filled: Filled) -> str:
    edition = "" if filled.edition == "paper" else f", edition {filled.edition}"
    return f"{filled.table.title}{edition}"


def remarks(filled: Filled) -> list[tuple[str, str]]:
    """What is under a table, each with a command or none: notes, where times come from, what is missing."""
    lines = [(note, "") for note in filled.notes]
    if filled.devices:
        lines.append((f"ms: time of one sample at batch 100 on {' and '.join(filled.devices)}.", ""))
    lines += [("Drawn by:", command) for command in filled.table.draw]
    for command, entries in filled.missing().items():
        runs = len({r.digest for e in entries for r in e.cell.runs if r.digest not in e.digests})
        cells = _listed([e.cell.label for e in entries])
        lines.append((f"Missing {runs} run{'s' * (runs != 1)} in {cells}:", command))
    return lines


def _listed(labels: Sequence[str], shown: int = 2) -> str:
    labels = list(dict.fromkeys(labels))
    rest = f" and {len(labels) - shown} more cells" if len(labels) > shown else ""
    return "; ".join(labels[:shown]) + rest


def is_best(filled: Filled, group: Group, row: str, column: str) -> bool:
    return filled.best.get((group.name, column)) == row
