"""Mean and variance over the test part, predicted and true, at two times: one column per group, one line per model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spdebench.paper.filled import Entry, Filled
from spdebench.records.record import MomentCurves, MomentData
from spdebench.report.numbers import heading
from spdebench.report.paper_figures.base import TITLE, Drawn, lacking, line_style, not_shown
from spdebench.report.style import INK, new_figure, plain, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTION = (
    "Mean and variance over the test part at two times, true (grey) and predicted by the first seed of each model."
)
STATISTICS = ("mean", "variance")


def draw_moments(filled: Filled) -> Drawn:
    """From the moments in the records of first seeds; a run without them is named."""
    found: dict[str, dict[str, tuple[Entry, MomentData]]] = {}
    missing = []
    for group in filled.groups:
        for row in group.rows:
            entry = group.row(row)[0]
            data = next((r.figure_data.moments for r in entry.records if r.figure_data.moments), None)
            if data:
                found.setdefault(group.name, {})[row] = (entry, data)
            else:
                missing.append(entry)
    absent = not_shown(f"{entry.cell.row} in {entry.cell.group}" for entry in missing)
    return Drawn(_plot(filled, found, absent) if found else None, lacking(missing), CAPTION)


@styled
def _plot(filled: Filled, found: dict[str, dict[str, tuple[Entry, MomentData]]], absent: str) -> Figure:
    """One column per group and one panel per statistic and frame, with a curve per model and one for the truth."""
    first = next(iter(next(iter(found.values())).values()))[1]
    frames = range(len(first.frames))
    panels = [(name, k) for name in STATISTICS for k in frames]
    remark = f"over {first.samples} test samples; predictions of the first seed.{absent}"
    size = (1.6 + 3.9 * len(found), 0.7 + 1.75 * len(panels))
    figure = new_figure(*size, plain(heading(filled), TITLE), remark)
    grid = figure.subplots(len(panels), len(found), squeeze=False, sharex="col")
    handles: dict[str, Any] = {}
    for column, (group, rows) in enumerate(found.items()):
        for line, (statistic, frame) in enumerate(panels):
            axes = grid[line, column]
            block = next(iter(rows.values()))[1]
            x = _points(block)
            (truth,) = axes.plot(x, _curve(block.true, statistic, frame), color=INK, linewidth=2.6, alpha=0.35)
            handles.setdefault("truth", truth)
            for row, (entry, own) in rows.items():
                curve = _curve(own.predicted, statistic, frame)
                (drawn,) = axes.plot(_points(own), curve, linewidth=1.1, **line_style(entry.cell.model))
                handles.setdefault(row, drawn)
            axes.set_title(f"{plain(group)}, {statistic}, frame {block.frames[frame]}, t = {block.times[frame]:g}")
            axes.margins(x=0)
        grid[-1, column].set_xlabel("$x$")
    figure.legend(handles.values(), [plain(name) for name in handles], loc="outside right center")
    return figure


def _points(block: MomentData) -> np.ndarray:
    return block.start + block.step * np.arange(len(block.true.mean[0]))


def _curve(curves: MomentCurves, statistic: str, frame: int) -> np.ndarray:
    return np.array((curves.mean if statistic == "mean" else curves.variance)[frame])
