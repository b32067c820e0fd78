"""Score against the truncation K of the noise that is seen: from the climatology to the true law, a line per model."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from spdebench.paper.filled import Filled, Group
from spdebench.paper.skill import CLIMATOLOGY, ENERGY_SCORE
from spdebench.records.record import TEST
from spdebench.records.summary import SKILL
from spdebench.report.numbers import heading, seeds_text
from spdebench.report.paper_figures.base import TITLE, Drawn, lacking, line_style, not_shown
from spdebench.report.style import GREY, INK, legend_below, new_figure, plain, styled
from spdebench.training.law_rows import CONDITIONAL_MEAN, INDEPENDENT_LAW

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAPTION = (
    "Skill (above: 0 for the climatology, 1 for the true law) and energy score (below: smaller is better) against what "
    "is seen of the noise. Thin lines are networks that were trained with all noise seen and are given drawn noise. A "
    "point is missing where a run has not been made, and where climatology and true law agree within 1 %, so that no "
    "skill is possible (nse with seen=0)."
)
ALL = "J"
"""The K with which all of the noise is seen."""
LOWEST = -0.25
"""The lowest skill that is shown; worse ones stand at the edge."""
ENDS: dict[str, dict[str, Any]] = {
    CLIMATOLOGY: {"color": GREY, "linestyle": "--", "marker": ""},
    INDEPENDENT_LAW: {"color": INK, "linestyle": "--", "marker": ""},
    CONDITIONAL_MEAN: {"color": GREY, "linestyle": ":", "marker": ""},
    "step": {"color": INK, "linestyle": "-", "marker": "s"},
}


def draw_observation(filled: Filled) -> Drawn:
    """From records alone; a problem is shown once a model has a skill there."""
    problems: dict[str, dict[str, Group]] = {}
    for group in filled.groups:
        problem, seen = _place(group)
        if any(e.values for e in group.entries.values()):
            problems.setdefault(problem, {})[seen] = group
    problems = {name: groups for name, groups in problems.items() if any(map(_has_skill, groups.values()))}
    missing = lacking(e for e in filled.entries if not e.values and e.cell.metric == ENERGY_SCORE)
    return Drawn(_plot(filled, problems) if problems else None, missing, CAPTION)


def _has_skill(group: Group) -> bool:
    return any(e.values for e in group.entries.values() if e.cell.metric == SKILL)


def _place(group: Group) -> tuple[str, str]:
    """``phi41, seen=8`` -> problem and K."""
    found = re.fullmatch(r"(.*), seen=(\w+)", group.name)
    return (found[1], found[2]) if found else (group.name, "")


@styled
def _plot(filled: Filled, problems: dict[str, dict[str, Group]]) -> Figure:
    """Skill above and energy score below, against the number K of modes that are seen; one column per problem."""
    levels = list(dict.fromkeys(_place(group)[1] for group in filled.groups))[::-1]
    made = {e.cell.row for e in filled.entries if e.values}
    remark = (
        f"one point per K: seen=0 is u0 alone, seen=J all of the noise; skills below {LOWEST:g} are drawn at the edge. "
        f"{seeds_text(filled.entries, spread=False)} Missing points: runs not made yet."
        f"{not_shown(row for row in filled.rows if row not in made)}"
    )
    figure = new_figure(1.8 * len(problems) + 1.0, 5.4, plain(heading(filled), TITLE), remark)
    panels = figure.subplots(2, len(problems), sharex=True, squeeze=False)
    for column, (problem, groups) in zip(panels.T, problems.items(), strict=True):
        for axes, metric in zip(column, (SKILL, ENERGY_SCORE), strict=True):
            _lines(axes, groups, levels, metric)
        column[0].set_title(plain(problem))
        for level, group in groups.items():
            if any(e.no_number for e in group.entries.values()):
                column[0].text(
                    levels.index(level), 0.5, "no skill possible", ha="center", va="center", color=GREY, rotation=90
                )
        column[0].set_xlim(-0.3, len(levels) - 0.7)
        column[0].set_ylim(LOWEST - 0.05, 1.1)
        column[1].set_ylim(bottom=0)
        column[1].set_xticks(range(len(levels)), levels)
        column[1].set_xlabel("seen $K$")
    for axes in panels[0][1:]:
        axes.tick_params(labelleft=False)  # skills have one scale, energy scores one for each problem
    panels[0][0].set_ylabel("skill")
    panels[1][0].set_ylabel("energy score")
    legend_below(figure, *panels.flat, columns=min(4, 1 + len(problems)))
    return figure


def _lines(axes: Axes, groups: dict[str, Group], levels: list[str], metric: str) -> None:
    """One line for each row that has a number."""
    for row in dict.fromkeys(row for group in groups.values() for row in group.rows):
        found = {
            levels.index(level): entry
            for level, group in groups.items()
            for entry in group.row(row)
            if entry.cell.metric == metric and entry.mean is not None and math.isfinite(entry.mean)
        }
        if not found:
            continue
        cell = next(iter(found.values())).cell
        name = cell.part if cell.part == CONDITIONAL_MEAN else cell.model
        thin = cell.part not in (TEST, CONDITIONAL_MEAN)
        heights = {place: max(e.mean or 0.0, LOWEST) for place, e in found.items()}
        if name == INDEPENDENT_LAW and ALL in groups:
            heights[levels.index(ALL)] = 1.0 if metric == SKILL else 0.0  # the true law is a point
        places = range(min(heights), max(heights) + 1)  # the line has a gap where a run is missing
        options = {"marker": "o", **line_style(name), **ENDS.get(name, {})}
        axes.plot(
            places, [heights.get(k, math.nan) for k in places], label=plain(row), markersize=3 if thin else 4.5,
            linewidth=0.7 if thin else 1.4, alpha=0.7 if thin else 1.0, **options,
        )  # fmt: skip
