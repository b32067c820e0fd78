"""Error against inference time of the rows of a table: models, baselines and the solver."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from spdebench.models import MODELS
from spdebench.paper.filled import Group
from spdebench.records.record import FINER
from spdebench.records.summary import MAIN, median
from spdebench.report.style import BLUE, GREEN, GREY, log_axis, new_figure, plain, styled
from spdebench.training.solver_row import SOLVER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Kind = Literal["model", "baseline", "solver"]
COLOURS: dict[Kind, str] = {"model": BLUE, "baseline": GREY, "solver": GREEN}
MARKS: dict[Kind, str] = {"model": "o", "baseline": "s", "solver": "D"}


@dataclass(frozen=True)
class Point:
    """One row: its name, its scores by seed, and the ms per sample where they were measured."""

    name: str
    values: tuple[float, ...]
    kind: Kind = "model"
    time: float | None = None

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)


def point_of(group: Group, row: str, columns: Sequence[str] | None = None) -> Point | None:
    """A row's error (geometric mean over the columns of relative L2, or those given) and time; None where it lacks one.

    The solver's error is its distance to a finer solution.
    """
    chosen = group.columns if columns is None else columns
    wanted = [c for c in chosen if any(e.cell.metric == MAIN for e in group.column(c))]
    entries = [group.entries[row, c] for c in wanted if (row, c) in group.entries]
    if not entries or len(entries) < len(wanted):
        return None
    model = entries[0].cell.model
    if model == SOLVER and entries[0].cell.part != FINER:
        return None
    time = _time(group, row, model, wanted)
    seeds = min(len(e.values) for e in entries)
    values = [[e.values[k] for e in entries] for k in range(seeds)]
    if not time or not values or not all(math.isfinite(v) and v > 0 for seed in values for v in seed):
        return None
    kind: Kind = "solver" if model == SOLVER else "model" if MODELS[model].trainable else "baseline"
    name = SOLVER if model == SOLVER else row
    return Point(name, tuple(statistics.geometric_mean(seed) for seed in values), kind, time)


def _time(group: Group, row: str, model: str, columns: Sequence[str]) -> float | None:
    """The median over the columns; for the solver over all of its rows."""
    timed = [e for c in columns for e in group.column(c) if e.inference_ms]
    return median(e.inference_ms for e in timed if (e.cell.model == SOLVER if model == SOLVER else e.cell.row == row))


@styled
def plot_cost(points: Sequence[Point], metric: str, title: str) -> Figure:
    """Error against inference time, both axes logarithmic; down and to the left is better."""
    figure = new_figure(7.0, 4.2, plain(title), "inference time per sample at batch 100;  bars: range over seeds")
    axes = figure.subplots()
    draw_costs(axes, points, metric)
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)
    label_costs(axes, points)
    return figure


def draw_costs(axes: Axes, points: Sequence[Point], metric: str) -> None:
    """Draw the marks of `plot_cost` on given axes; `label_costs` adds the names once the layout is known."""
    for point in points:
        low, high = min(point.values), max(point.values)
        bars = [[point.mean - low], [high - point.mean]]
        axes.errorbar(
            point.time or math.nan, point.mean, yerr=bars, fmt=MARKS[point.kind], color=COLOURS[point.kind],
            markersize=5, elinewidth=0.8,
        )  # fmt: skip
    axes.set(xlabel="ms per sample", ylabel=plain(metric))
    times = [p.time for p in points if p.time]
    log_axis(axes, "x", times)
    log_axis(axes, "y", [v for p in points for v in p.values])
    if times:
        axes.set_xlim(min(times) / 2, max(times) * 4)
    axes.grid(color=GREY, alpha=0.2, linewidth=0.6)


def label_costs(axes: Axes, points: Sequence[Point]) -> None:
    """Names next to their marks, moved up or down until they touch neither each other nor a mark."""
    from matplotlib.transforms import Bbox

    marks = (axes.transData.transform((p.time, p.mean)) for p in points if p.time)
    taken: list[Any] = [Bbox.from_bounds(x - 3, y - 3, 6, 6) for x, y in marks]
    for point in sorted(points, key=lambda p: p.mean):
        for shift in (0, 9, -9, 18, -18, 27, -27, 36):
            note = axes.annotate(
                plain(point.name), (point.time or math.nan, point.mean), (6, shift), textcoords="offset points",
                va="center", fontsize=8, color=COLOURS[point.kind],
                arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.4} if abs(shift) > 9 else None,
            )  # fmt: skip
            box = note.get_window_extent()
            if not any(box.overlaps(other) for other in taken):
                break
            note.remove()
        else:
            continue  # there is no space for the name, which is in the table below
        taken.append(box)
