"""One model trained with several losses: validation error against epoch, and the metrics on the test part."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from spdebench.metrics import metric_title
from spdebench.paper.filled import Entry, Filled
from spdebench.records.record import LossLog
from spdebench.report.numbers import heading, seeds_text
from spdebench.report.paper_figures.base import TITLE, Drawn, lacking, not_shown
from spdebench.report.style import BLUE, GREEN, GREY, ORANGE, log_axis, new_figure, plain, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAPTION = "Validation error against epoch, and metrics on the test part, of one model trained with several losses."
COLOURS = (BLUE, ORANGE, GREEN, GREY)


def draw_losses(filled: Filled) -> Drawn:
    """From the thinned logs and the scores in records."""
    rows = {row: [e for group in filled.groups for e in group.row(row)] for row in filled.rows}
    logs = {row: [log for r in entries[0].records if (log := r.figure_data.log)] for row, entries in rows.items()}
    known = {row: entries for row, entries in rows.items() if any(e.values for e in entries) or logs[row]}
    missing = lacking(rows[row][0] for row in rows if not logs[row])
    return Drawn(_plot(filled, known, logs) if known else None, missing, CAPTION)


@styled
def _plot(filled: Filled, rows: dict[str, list[Entry]], logs: dict[str, list[LossLog]]) -> Figure:
    """Validation errors by epoch on the left, metrics of the test part with error bars on the right."""
    remark = f"left: error of the validation part, a line per seed;  right: test part.  {seeds_text(filled.entries)}"
    remark += not_shown(row for row in filled.rows if not logs[row])
    figure = new_figure(9.6, 3.9, plain(heading(filled), TITLE), remark)
    left, right = figure.subplots(1, 2)
    colours = {row: COLOURS[k % len(COLOURS)] for k, row in enumerate(rows)}
    handles = {}
    for row, entries in rows.items():
        for log in logs[row]:
            left.plot(log.epoch, np.array(log.val), color=colours[row], linewidth=1.1, alpha=0.8)
        handles[row] = _marks(right, entries, colours[row], 0.16 * (list(rows).index(row) - (len(rows) - 1) / 2))
    left.set(title="validation", xlabel="epoch", ylabel="relative $L^2$")
    log_axis(left, "y", [v for row in rows for log in logs[row] for v in log.val if math.isfinite(v) and v])
    columns = [e.cell.column for e in next(iter(rows.values()))]
    right.set_yticks(range(len(columns)), [plain(metric_title(c)) for c in columns])
    right.invert_yaxis()
    right.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    right.set(title="metrics on the test part", xlabel="score, smaller is better")
    log_axis(right, "x", [v for entries in rows.values() for e in entries for v in _bar(e) if math.isfinite(v)])
    figure.legend(handles.values(), [plain(row) for row in handles], loc="outside lower center", ncols=len(handles))
    return figure


def _bar(entry: Entry) -> tuple[float, float, float]:
    """Mean - s.d. (if positive), mean, mean + s.d."""
    mean, std = entry.mean if entry.mean is not None else math.nan, entry.std or 0.0
    return (mean - std if mean > std else mean), mean, mean + std


def _marks(axes: Axes, entries: list[Entry], colour: str, shift: float) -> Any:
    """A dot and a bar for each metric."""
    low, mean, high = np.array([_bar(e) for e in entries]).T
    places = np.arange(len(entries)) + shift
    return axes.errorbar(
        mean, places, xerr=[mean - low, high - mean], fmt="o", color=colour, markersize=4, elinewidth=1
    )
