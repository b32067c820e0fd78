"""Models under all metrics at once: one panel per group of a table, one polygon per model, one axis per metric."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from spdebench.metrics import metric_title
from spdebench.paper.filled import Entry, Filled, Group
from spdebench.report.numbers import heading
from spdebench.report.paper_figures.base import TITLE, Drawn, lacking, line_style, not_shown
from spdebench.report.style import GREY, new_figure, plain, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.projections.polar import PolarAxes

CAPTION = "Outwards is better: score / best of the panel on a logarithmic scale, from the rim (1) to the centre (1000)."
DECADES = 3  # from the rim to the centre


def radius(score: float | None, best: float) -> float:
    """1 - log10(score / best) / 3 within [0, 1]: the rim is the best of a panel, the centre 1000 times its error.

    A score of 0 is at the rim, one that is not finite at the centre.
    """
    if score is None or not math.isfinite(score):
        return 0.0
    if score <= best:
        return 1.0
    return 0.0 if best <= 0 else max(0.0, 1 - math.log10(score / best) / DECADES)


def draw_radar(filled: Filled) -> Drawn:
    """From records alone; a model is shown in a panel once it has a run there."""
    complete = {g.name: [row for row in g.rows if all(e.values for e in g.row(row))] for g in filled.groups}
    missing = lacking(e for e in filled.entries if e.cell.row not in complete[e.cell.group])
    panels = [g for g in filled.groups if complete[g.name]]
    return Drawn(_plot(filled, panels, complete) if panels else None, missing, CAPTION)


@styled
def _plot(filled: Filled, panels: list[Group], complete: dict[str, list[str]]) -> Figure:
    """One polar panel per group, with a polygon for each model that has all numbers."""
    wide = 2 if len(panels) > 1 else 1
    high = -(-len(panels) // wide)
    remark = "outwards is better: rim = the best of the panel, each ring inwards 10 times its error, centre 1000 times."
    remark += not_shown(_missing_runs(filled, panels, complete))
    figure = new_figure(1.9 + 4.2 * wide, 0.7 + 3.1 * high, plain(heading(filled), TITLE), remark)
    grid = figure.subplots(high, wide, squeeze=False, subplot_kw={"projection": "polar"})
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    handles = {}
    for axes, group in zip(grid.flat, panels, strict=False):
        _frame(axes, group)
        for row in complete[group.name]:
            handles[row] = _polygon(axes, group, row, complete[group.name])
    figure.legend(handles.values(), [plain(name) for name in handles], loc="outside right center")
    return figure


def _missing_runs(filled: Filled, panels: list[Group], complete: dict[str, list[str]]) -> list[str]:
    """What the figure does not show because runs are missing: whole panels, and models within panels."""
    lacking_panels = [group.name for group in filled.groups if group not in panels]
    models: dict[str, list[str]] = {}
    for group in panels:
        for row in group.rows:
            if row not in complete[group.name]:
                models.setdefault(row, []).append(group.name)
    parts = [f"panel {name}" for name in lacking_panels]
    parts += [row if len(names) == len(panels) else f"{row} in {', '.join(names)}" for row, names in models.items()]
    return parts


def _frame(axes: PolarAxes, group: Group) -> None:
    """Label a panel: a metric at each angle, and powers of ten of the ratio to the best from the rim to the centre."""
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    angles = np.linspace(0, 2 * math.pi, len(group.columns), endpoint=False)
    axes.set_xticks(angles, [textwrap.fill(plain(metric_title(column)), 13) for column in group.columns])
    axes.tick_params(axis="x", labelsize=7.5, pad=1)
    for label, angle in zip(axes.get_xticklabels(), angles, strict=True):  # outside the rim, not across it
        side = math.sin(angle)
        label.set_horizontalalignment("center" if abs(side) < 0.1 else "left" if side > 0 else "right")
    axes.set_ylim(0, 1.04)
    rings = [1 - k / DECADES for k in range(DECADES)]
    axes.set_yticks(rings, ["best", *(f"×{10**k}" for k in range(1, DECADES))])
    axes.tick_params(axis="y", labelsize=6.5, labelcolor=GREY)
    axes.set_rlabel_position(180 / len(group.columns))
    axes.grid(color=GREY, alpha=0.3, linewidth=0.6)
    axes.spines["polar"].set_visible(False)
    axes.set_title(plain(group.name), pad=12)


def _polygon(axes: PolarAxes, group: Group, row: str, rivals: list[str]) -> Line2D:
    """Draw the polygon of one model; a corner lies on the rim where the model is the best of its ``rivals``."""
    entries = group.row(row)
    best = [min(_finite([group.entries[r, e.cell.column] for r in rivals])) for e in entries]
    ends = [radius(e.mean, b) for e, b in zip(entries, best, strict=True)]
    angles = np.linspace(0, 2 * math.pi, len(entries) + 1)
    (line,) = axes.plot(angles, [*ends, ends[0]], linewidth=1.3, **line_style(entries[0].cell.model))
    axes.fill(angles, [*ends, ends[0]], color=line.get_color(), alpha=0.04, linewidth=0)
    return line


def _finite(entries: list[Entry]) -> list[float]:
    return [e.mean for e in entries if e.mean is not None and math.isfinite(e.mean)] or [math.inf]
