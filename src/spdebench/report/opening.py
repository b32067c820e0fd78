"""The first screen of README, from records: three sentences, and a figure of error against cost in two colour schemes.

The figure shows phi41 on the circle at J = 128, xi -> u, sigma 1. A network has two dots at the time of our
implementation: its published error (hollow) and ours (full). A star marks models that are given the kernel of the
solver. A row without a time on the device is a line.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from spdebench.models import MODELS
from spdebench.paper.catalogue import table
from spdebench.paper.fill import fill
from spdebench.paper.filled import Group
from spdebench.paper.layout import FINE_REFERENCE, GENERATORS, MORE_ACCURATE
from spdebench.records import Records
from spdebench.records.solver_times import large_batches
from spdebench.records.summary import MAIN, median
from spdebench.report.markup import paragraph, picture_for_schemes
from spdebench.report.style import BLUE, GREEN, GREY, INK, ORANGE, log_axis, save, styled
from spdebench.training.solver_row import SOLVER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TABLE, COLUMN, TITLE = "phi41-periodic-sigma1", "J=128", "Phi41, sigma 1, J = 128, xi -> u"
FIGURES = {"light": Path("docs") / "headline.svg", "dark": Path("docs") / "headline-dark.svg"}
Scheme = Literal["light", "dark"]
Kind = Literal["network", "regression", "solver", "data", "floor"]


@dataclass(frozen=True)
class Palette:
    """Colours of one scheme; the background is that of a page of GitHub, so that the figure has no frame."""

    paper: str
    ink: str
    faint: str
    network: str
    regression: str
    solver: str

    def of(self, kind: Kind) -> str:
        return {"network": self.network, "regression": self.regression}.get(kind, self.solver)


PALETTES: dict[str, Palette] = {
    "light": Palette("#ffffff", INK, GREY, BLUE, ORANGE, GREEN),
    "site": Palette("none", INK, GREY, BLUE, ORANGE, GREEN),  # a page gives these colours its own
    "dark": Palette("#0d1117", "#e6edf3", "#7d8590", "#58a6ff", "#ffa657", "#3fd0a0"),
}


@dataclass(frozen=True)
class Dot:
    """A row: our error, the published one, and ms per sample at batch 100; without a time it is drawn as a line."""

    name: str
    kind: Kind
    error: float
    published: float | None = None
    time: float | None = None


def dots(records: Records) -> list[Dot]:
    """The dots of the figure; a row without a record is left out."""
    group = fill(table(TABLE), records).groups[0]
    found = []
    for entry in group.column(COLUMN):
        if entry.mean is None or entry.cell.metric != MAIN or not 0 < entry.mean < math.inf:
            continue
        model, row = entry.cell.model, entry.cell.row
        if model == SOLVER:
            found += _solver(group, entry.mean) if row == FINE_REFERENCE else []
        else:
            kind: Kind = "network" if MODELS[model].trainable else "regression"
            name, time = row.replace(GENERATORS, "*"), entry.inference_ms or _time(group, model)
            found.append(Dot(name, kind, entry.mean, entry.cell.published, time))
    floor = group.numbers(COLUMN).floor
    return [*found, *([Dot("floor: what the given noise allows", "floor", floor)] if floor else [])]


def _time(group: Group, model: str) -> float | None:
    """The time of another row of the same model: the rows differ in the kernel, which does not change the cost."""
    return median(e.inference_ms for e in group.column(COLUMN) if e.cell.model == model)


def _solver(group: Group, distance: float) -> list[Dot]:
    """The discretisation error of the data as a line, and on it the solver at batch 100 and at the large batch."""
    times = [e.inference_ms for e in group.column(COLUMN) if e.cell.model == SOLVER and e.inference_ms]
    out = [Dot("discretisation error", "data", distance)]
    if times:
        large = large_batches()["phi41"]
        out.append(Dot("solver", "solver", distance, time=statistics.median(times)))
        out.append(Dot(f"solver, batch {large.samples:,}", "solver", distance, time=large.ms))
    return out


# --- sentences ----------------------------------------------------------------------------------------------------
def opening(records: Records) -> str:
    """Three sentences and the figure, as Markdown."""
    return f"{paragraph(' '.join(sentences(dots(records))))}\n\n{_picture()}\n"


def sentences(found: Sequence[Dot]) -> list[str]:
    """Three sentences: on the purpose of the benchmark, on its main result, and on where to read more."""
    by_name = {d.name: d for d in found}
    published = {d.name: d.published for d in found if d.published is not None}
    step, distance = by_name.get("step"), next((d.error for d in found if d.kind == "data"), None)
    own = [m for m in MODELS.values() if m.__module__.startswith("spdebench.")]
    networks = sum(m.trainable for m in own)
    lines = [
        f"SPDEBench generates data for stochastic PDEs, trains {networks} neural networks and fits "
        f"{len(own) - networks} simple baselines by the same procedure, and compares their test errors with those of "
        "the SPDEBench paper."
    ]
    if step and distance and published:
        best = min(published, key=lambda name: published[name])
        below = sum(value < distance for value in published.values())
        lines.append(
            f"An example is the task to predict the solution of a heat equation with a cubic drift from its noise "
            f"({TITLE}). The relative L2 error of the best published network ({best.rstrip('*')}) is "
            f"{published[best]:g}; a regression that fits one time step without knowing the equation has "
            f"{step.error:.0e}. The discretisation error of these data, their distance to {MORE_ACCURATE}, is "
            f"{distance:.2g}: {below} of the {len(published)} published errors are smaller, and no longer tell "
            "us about the SPDE."
        )
    lines.append(
        "Every number is computed from run records in this repository; [docs/findings.md](docs/findings.md) lists what "
        "they show."
    )
    return lines


def _picture() -> str:
    """The figure, in HTML."""
    light, dark = (FIGURES[scheme].as_posix() for scheme in ("light", "dark"))
    return picture_for_schemes(light, dark, "Error against time of networks, published and ours, regressions, solver")


# --- the figure ---------------------------------------------------------------------------------------------------
def drawn(records: Records) -> str:
    """The content of the figure as text that does not depend on the drawing library."""

    def short(value: float | None) -> float | None:
        return None if value is None else float(f"{value:.5g}")

    return json.dumps([[d.name, short(d.time), short(d.error), short(d.published)] for d in dots(records)])


def write_figures(records: Records, root: Path) -> None:
    """One SVG for each colour scheme, below the folder of README."""
    for scheme, path in FIGURES.items():
        save(plot_opening(dots(records), PALETTES[scheme]), root / path, about=drawn(records))


@styled
def plot_opening(found: Sequence[Dot], palette: Palette) -> Figure:
    """Error against time, both axes logarithmic; large letters, so that it can be read at 400 pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 6.2), facecolor=palette.paper)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.145, 0.105, 0.835, 0.775), facecolor=palette.paper)
    title = f"{TITLE}: test error against cost"
    figure.text(0.02, 0.975, title, fontsize=13, fontweight="bold", va="top", color=palette.ink)
    _key(figure, palette)
    timed = [d for d in found if d.time]
    for dot in timed:
        _draw(axes, dot, palette)
    axes.set_xlabel("ms per sample at batch 100 on one GPU", fontsize=12, color=palette.ink)
    axes.set_ylabel("relative L2 on the test part", fontsize=12, color=palette.ink)
    log_axis(axes, "x", [d.time for d in timed if d.time])
    log_axis(axes, "y", [v for d in found for v in (d.error, d.published) if v])
    axes.tick_params(labelsize=11, color=palette.faint, labelcolor=palette.ink)
    for side in axes.spines.values():
        side.set_color(palette.faint)
    axes.grid(color=palette.faint, alpha=0.25, linewidth=0.6)
    if timed:
        times = [d.time for d in timed if d.time]
        axes.set_xlim(min(times) / 1.8, max(times) * 9)  # space for the names on the right
    heights = [v for d in found for v in (d.error, d.published) if v]
    if heights:
        axes.set_ylim(min(heights) / 3.5, max(heights) * 2.5)  # space for a name below the lowest line
    for dot in (d for d in found if not d.time):
        axes.axhline(dot.error, color=palette.of(dot.kind), linewidth=1.1, linestyle=(0, (5, 3)), zorder=1)
    figure.draw_without_rendering()
    _name(axes, found, palette)
    return figure


def _key(figure: Figure, palette: Palette) -> None:
    """Explain the marks in one line below the title."""
    words: list[tuple[str, str]] = [("● ours", palette.network), ("○ published", palette.network)]
    words += [("■ no network", palette.regression), ("◆ solver", palette.solver)]
    words += [("* given the kernel of the solver", palette.ink)]
    left = 0.02
    for word, colour in words:
        text = figure.text(left, 0.925, word, fontsize=11, va="top", color=colour, fontfamily="DejaVu Sans")
        left += text.get_window_extent().width / figure.bbox.width + 0.03


def _draw(axes: Axes, dot: Dot, palette: Palette) -> None:
    """Draw our error and, hollow and joined to it by a line, the published one."""
    mark = {"network": "o", "regression": "s", "solver": "D"}[dot.kind]
    colour, time = palette.of(dot.kind), dot.time or math.nan
    if dot.published is not None:
        axes.plot([time] * 2, [dot.error, dot.published], color=colour, linewidth=1.0, alpha=0.7, zorder=2)
        axes.plot(time, dot.published, mark, markersize=7, markerfacecolor=palette.paper, color=colour, zorder=3)
    axes.plot(time, dot.error, mark, markersize=7, color=colour, zorder=4)


def _name(axes: Axes, found: Sequence[Dot], palette: Palette) -> None:
    """Networks are named in a column on the right, each with a thin line to its dot; the others next to their marks."""
    spots = _column(axes, [d for d in found if d.kind == "network" and d.time])
    right = axes.get_xlim()[1]
    for dot, height in spots:
        axes.annotate(
            dot.name, (dot.time or math.nan, dot.error), (right / 4.2, height), fontsize=11, va="center",
            color=palette.network, zorder=5, bbox={"facecolor": palette.paper, "edgecolor": "none", "pad": 0.8},
            arrowprops={"arrowstyle": "-", "color": palette.faint, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4},
        )  # fmt: skip
    taken = _marks(axes, found)
    for dot in sorted((d for d in found if d.kind != "network"), key=lambda d: (not d.time, d.kind == "regression")):
        taken.append(_next_to_mark(axes, dot, palette, taken))


def _marks(axes: Axes, found: Sequence[Dot]) -> list[Any]:
    """Boxes of the dots and of the lines, which no name may touch."""
    from matplotlib.transforms import Bbox

    left, width = axes.bbox.x0, axes.bbox.width
    lines = [axes.transData.transform((1.0, d.error))[1] for d in found if not d.time]
    places = [(d.time, value) for d in found if d.time for value in (d.error, d.published) if value]
    dots = [Bbox.from_bounds(x - 5, y - 5, 10, 10) for x, y in axes.transData.transform(places)] if places else []
    return [*dots, *(Bbox.from_bounds(left, y - 1, width, 2) for y in lines)]


def _next_to_mark(axes: Axes, dot: Dot, palette: Palette, taken: Sequence[Any]) -> Any:
    """Write a name at the first place next to its mark (or along its line) that is free; returns its box."""
    words, anchor = dot.name, (dot.time or axes.get_xlim()[0], dot.error)
    options: list[tuple[tuple[int, int], str, str]] = [
        ((9, 0), "left", "center"), ((7, 12), "left", "center"), ((7, -12), "left", "center"),
        ((7, -27), "left", "center"), ((-9, 0), "right", "center"), ((-7, -12), "right", "center"),
        ((-7, 12), "right", "center"),
    ]  # fmt: skip
    if dot.kind == "solver":
        options = options[1:]
    elif not dot.time:
        words += "" if dot.kind in ("data", "floor") else " (time on this GPU not measured)"
        up = ((6, 4), "left", "bottom")
        options = [up] if dot.kind == "floor" else [((6, -7), "left", "top"), up]
    for shift, across, along in options:
        note = axes.annotate(
            words, anchor, shift, textcoords="offset points", ha=across, va=along, fontsize=11,
            color=palette.of(dot.kind),
        )  # fmt: skip
        box = note.get_window_extent().padded(4, 0)
        if not any(box.overlaps(other) for other in taken) or (shift, across, along) == options[-1]:
            break
        note.remove()
    return box


def _column(axes: Axes, found: Sequence[Dot]) -> list[tuple[Dot, float]]:
    """Heights (in data) of the names of the column: near their dots, in their order, 15 points apart."""
    if not found:
        return []
    figure: Any = axes.figure
    step = 15.0 * figure.dpi / 72
    order = sorted(found, key=lambda d: d.error)
    wanted = [float(axes.transData.transform((1.0, d.error))[1]) for d in order]
    for k in range(1, len(wanted)):
        wanted[k] = max(wanted[k], wanted[k - 1] + step)
    top = float(axes.bbox.y1) - step / 2
    excess = max(0.0, wanted[-1] - top)
    wanted[-1] -= excess
    for k in range(len(wanted) - 2, -1, -1):
        wanted[k] = min(wanted[k], wanted[k + 1] - step)
    heights = [float(axes.transData.inverted().transform((0.0, y))[1]) for y in wanted]
    return list(zip(order, heights, strict=True))
