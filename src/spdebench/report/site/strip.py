"""All rows of a problem on one line, with the floor: a small drawing for each problem of a board.

It is written as SVG directly, because matplotlib would take longer for it than all other work on a page.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable

from spdebench.records.summary import number
from spdebench.report.board import BoardRow, Problem
from spdebench.tasks.floor import AT_FLOOR

WIDTH, LEFT, RIGHT = 640.0, 14.0, 14.0
LINE, HEIGHT = 26.0, 46.0
"""The height of the axis, and of the whole drawing."""
REACH = 100.0
"""The axis extends to the floor if this is above the smallest error divided by `REACH`; else the floor is an arrow."""
COLOURS = {"network": "--blue", "submission": "--ink", "baseline": "--orange"}


def strip(problem: Problem) -> str:
    """A log axis of the metric that ranks: one mark per model (its name shows under the pointer), and the floor.

    Empty if fewer than two rows have a positive score.
    """
    from markupsafe import Markup

    shown = (row for row in problem.rows if not (row.first.reference or row.first.pilot))
    rows = [row for row in shown if row.main and 0 < row.main.mean < math.inf]
    if len(rows) < 2:
        return Markup()
    means = [row.main.mean for row in rows if row.main]
    floor = problem.floor.mean if problem.floor and problem.floor.mean > 0 else None
    near = [floor] if floor is not None and REACH * floor > min(means) else []
    low, high = min(means + near), max(means)
    low, high = low / 1.15, max(high * 1.15, low * 1.5)

    def place(value: float) -> float:
        share = math.log(value / low) / math.log(high / low)
        return round(LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, max(0.0, share)), 1)

    pieces = [f'<path d="M{LEFT} {LINE}H{WIDTH - RIGHT}" class="axis"/>', *_ticks(low, high, place)]
    if floor is not None:
        pieces += _floor(floor, place(floor), place(AT_FLOOR * floor) if near else None)
    pieces += [_mark(row, place(row.main.mean)) for row in reversed(rows) if row.main]
    below = f", and the floor {number(floor)}" if floor is not None else ""
    words = f"{problem.metric} of {len(rows)} rows from {number(min(means))} to {number(max(means))}{below}"
    return Markup(
        f'<svg class="strip" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{html.escape(words)}">'
        + "".join(pieces)
        + "</svg>"
    )


def _ticks(low: float, high: float, place: Callable[[float], float]) -> list[str]:
    """Ticks at the powers of ten within the axis; at its ends if there is none."""
    powers = [10.0**k for k in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    shown = powers or [low * 1.15, high / 1.15]
    return [
        f'<path d="M{place(value)} {LINE}v4" class="axis"/><text x="{place(value)}" y="{LINE + 16}">{value:.3g}</text>'
        for value in shown
    ]


def _floor(value: float, at: float, end: float | None) -> list[str]:
    """A line and a band up to 1.2 times the floor; an arrow at the left end if the floor is beyond it."""
    if end is None:
        shape = f'<path d="M{LEFT + 9} {LINE - 18}l-8 4l8 4" class="floor"/>'
        return [shape, f'<text x="{LEFT + 14}" y="{LINE - 10}" class="left">floor {number(value)}</text>']
    return [
        f'<rect x="{at}" y="{LINE - 12}" width="{max(0.0, end - at):.1f}" height="12" class="band"/>',
        f'<path d="M{at} {LINE - 14}v14" class="floor"/>',
        f'<text x="{at}" y="{LINE - 16}" class="left">floor {number(value)}</text>',
    ]


def _mark(row: BoardRow, at: float) -> str:
    """A circle for a network, a square for a baseline, a diamond for a submission; hollow if it has no rank."""
    assert row.main is not None
    colour = f"var({COLOURS[row.kind]})"
    shape_style = f'fill="{colour if row.rank else "none"}" stroke="{colour}"'
    shape = {
        "baseline": f'<rect x="{at - 3.5:.1f}" y="{LINE - 3.5}" width="7" height="7" {shape_style}>',
        "submission": f'<path d="M{at - 5.5:.1f} {LINE}l5.5 -5.5l5.5 5.5l-5.5 5.5z" {shape_style}>',
    }.get(row.kind, f'<circle cx="{at}" cy="{LINE}" r="4" {shape_style}>')
    kind = {"r": "rect", "p": "path", "c": "circle"}[shape[1]]
    return f"{shape}<title>{html.escape(f'{row.label}: {number(row.main.mean)}')}</title></{kind}>"
