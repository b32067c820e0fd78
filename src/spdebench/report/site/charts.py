"""The site's drawings, and how a figure becomes part of a page.

Lines and text of a drawing take their colours from the page, so that they can be read in light and in dark mode; names
in records are never read as mathematics.
"""

from __future__ import annotations

import html
import io
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spdebench.grids import Grid
from spdebench.metrics import metric_title
from spdebench.report.costs import COLOURS, MARKS, Point
from spdebench.report.paper_figures.base import SKY
from spdebench.report.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    STYLE,
    finer_scale,
    legend_above,
    log_axis,
    new_figure,
    picture,
    plain,
    plane,
    styled,
    symmetric_limit,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_VARIABLES = {INK: "--ink", GREY: "--grey", BLUE: "--blue", ORANGE: "--orange", GREEN: "--green", SKY: "--sky"}


# --- into a page --------------------------------------------------------------------------------------------------
def inline(figure: Figure, prefix: str, caption: str) -> str:
    """The figure as SVG within HTML; its identifiers begin with ``prefix``, so that a page can contain several."""
    from matplotlib import style
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    for patch in (figure.patch, *(axes.patch for axes in figure.axes)):
        patch.set_alpha(0)
    text = io.StringIO()
    with style.context(["default", STYLE, {"svg.fonttype": "none"}]):  # words stay words: small, found by a search
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(text, metadata={"Date": None, "Creator": None})  # once; savefig would draw it twice
    body = text.getvalue()
    body = re.sub(r"<!--.*?-->|<(metadata|style)\b.*?</\1>", "", body[body.index("<svg") :], flags=re.DOTALL)
    box = re.search(r'viewBox="([-\d. ]+)"', body)
    assert box is not None
    width = float(box[1].split()[2]) / 0.75  # points to CSS pixels
    words, drawn = html.escape(caption), _compact(body[body.index(">") + 1 :], prefix)
    return f'<svg viewBox="{box[1]}" style="width:{width:.0f}px" role="img" aria-label="{words}">{drawn}'


def _compact(body: str, prefix: str) -> str:
    """The same drawing in about a third of the bytes.

    Identifiers that are not referred to are removed, numbers have two decimals, type face and colours are those of the
    page, and repeated styles become classes. Words between tags do not change.
    """
    pieces = re.split(r"(<[^<>]*>)", body)
    tags = "\0".join(pieces[1::2]).replace("xlink:href", "href")
    for colour, variable in _VARIABLES.items():
        tags = tags.replace(colour, f"var({variable})")
    names = {name: f"{prefix}{k}" for k, name in enumerate(dict.fromkeys(re.findall(r"#([\w.-]+)[\")]", tags)))}
    tags = re.sub(r' id="([^"]*)"', lambda m: f' id="{names[m[1]]}"' if m[1] in names else "", tags)
    tags = re.sub(r'(href="#|url\(#)([\w.-]+)', lambda m: m[1] + names[m[2]], tags)
    tags = re.sub(r' (?:d|x|y|transform)="[^"]*"', lambda m: re.sub(r"(\.\d\d)\d+", r"\1", m[0]), tags)
    tags = re.sub(r'font-family: [^;"]*;? ?| transform="rotate\(-0 [^"]*"', "", tags)
    styles = Counter(re.findall(r'style="([^"]*)"', tags))
    classes = {style: f"{prefix}-{k}" for k, style in enumerate(styles) if styles[style] > 2}
    tags = re.sub(r'style="([^"]*)"', lambda m: f'class="{classes[m[1]]}"' if m[1] in classes else m[0], tags)
    pieces[1::2] = tags.split("\0")
    rules = "".join(f".{name}{{{style}}}" for style, name in classes.items())
    return f"<style>{rules}</style>" + re.sub(r"<defs>\s*</defs>|(?<=\n)\s+", "", "".join(pieces))


# --- a run --------------------------------------------------------------------------------------------------------
@styled
def plot_training(log: Sequence[Mapping[str, float]], best: float | None, curve: Sequence[float], title: str) -> Figure:
    """Left: training and validation loss against the epoch, the best one marked. Right: error over time.

    ``curve`` is the relative error at t_1..t_T on the test part. ``log`` or ``curve`` may be empty.
    """
    figure = new_figure(4.5 * (bool(log) + bool(curve)), 3.0, plain(title), "")
    columns = list(np.atleast_1d(figure.subplots(1, bool(log) + bool(curve))))
    if log:
        axes = columns.pop(0)
        epochs = [entry["epoch"] for entry in log]
        for key, colour, name in (("train", GREY, "training"), ("val", BLUE, "validation")):
            axes.plot(epochs, [entry.get(key, math.nan) for entry in log], color=colour, label=name)
        if best is not None:
            axes.axvline(best, color=GREY, linestyle=":", linewidth=1, label="best")
        log_axis(axes, "y", [entry[key] for entry in log for key in ("train", "val") if key in entry])
        axes.set(title="loss", xlabel="epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
        legend_above(axes, 3)
    if curve:
        axes = columns.pop(0)
        axes.plot(np.arange(1, len(curve) + 1), curve, color=BLUE)
        axes.set(title="relative $L^2$ error of each frame, test part", xlabel="frame")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_ylim(bottom=0)
    return figure


@styled
def plot_prediction(truth: np.ndarray, predicted: np.ndarray, end: float, grid: Grid, title: str) -> Figure:
    """Truth, prediction and their difference for one test sample (T X..): over space and time in 1-D, else at t = T.

    The difference has a finer colour scale; its title states the factor.
    """
    fields = [truth, predicted, predicted - truth]
    if grid.dim == 1:
        extent = (grid.lower[0], grid.upper[0], 0.0, end)
    else:
        extent = (grid.lower[0], grid.upper[0], grid.lower[1], grid.upper[1])
        fields = [plane(field[-1]) for field in fields]
    figure = new_figure(9.0, 3.1, plain(title), "" if grid.dim == 1 else f"at t = {end:.3g}")
    limit = symmetric_limit(np.nan_to_num(truth))
    finer = finer_scale(np.nan_to_num(fields[2]), limit)
    names = {"truth": limit, "prediction": limit, f"prediction − truth, colours × {finer:g}": limit / finer}
    row = list(figure.subplots(1, 3, sharey=True))
    for axes, field, (name, top) in zip(row, fields, names.items(), strict=True):
        image = picture(axes, np.nan_to_num(field), extent, top)
        axes.set(title=name, xlabel="$x$")
        if axes is not row[0]:  # one bar for truth and prediction, one for the difference
            figure.colorbar(image, ax=row[:2] if axes is row[1] else axes, extend="both", aspect=18, pad=0.02)
    row[0].set_ylabel("time $t$" if grid.dim == 1 else "$y$")
    return figure


# --- models ---------------------------------------------------------------------------------------------------------
@styled
def plot_ranking(points: Sequence[Point], metric: str, title: str) -> Figure:
    """One row per model, best on top: the score of every seed and their mean, on a log axis."""
    shown = sorted(points, key=lambda p: p.mean, reverse=True)
    figure = new_figure(7.0, 1.2 + 0.24 * len(shown), plain(title), "small: one seed;  large: mean over seeds")
    axes = figure.subplots()
    for place, point in enumerate(shown):
        colour = COLOURS[point.kind]
        axes.plot(point.values, [place] * len(point.values), "|", color=colour, markersize=7, markeredgewidth=1)
        axes.plot(point.mean, place, MARKS[point.kind], color=colour, markersize=5)
    axes.set_yticks(range(len(shown)), [plain(p.name) for p in shown])
    _lines(axes, len(shown))
    axes.set(xlabel=plain(metric_title(metric)), ylim=(-0.6, len(shown) - 0.4))
    log_axis(axes, "x", [v for p in shown for v in p.values])
    return figure


def _lines(axes: Axes, count: int) -> None:
    """Thin lines along the rows 0..count-1, which lead the eye from a name to its marks."""
    _bars(axes, np.zeros(count), np.ones(count), np.arange(count), transform=axes.get_yaxis_transform(), color=GREY,
          alpha=0.25, linewidth=0.6)  # fmt: skip
    axes.tick_params(axis="y", left=False)


def _bars(axes: Axes, low: np.ndarray, high: np.ndarray, place: np.ndarray, **options: Any) -> None:
    """Horizontal bars from low to high, drawn as one line with gaps."""
    gap = np.full(len(place), math.nan)
    axes.plot(np.stack([low, high, gap], 1).ravel(), np.stack([place, place, gap], 1).ravel(), **options)


# --- our numbers and the published ones -----------------------------------------------------------------------------
@dataclass(frozen=True)
class PublishedPair:
    """A cell of a table: the published number and ours, each with its s.d. if there is one."""

    row: str
    column: str
    published: float | None
    published_std: float | None
    measured: float | None
    measured_std: float | None


@styled
def plot_published(pairs: Sequence[PublishedPair], title: str) -> Figure:
    """One panel per column, one row per model: ours (filled), the published number (open), bars of ± 1 s.d."""
    rows = list(dict.fromkeys(p.row for p in pairs))[::-1]
    columns = list(dict.fromkeys(p.column for p in pairs))
    wide = min(len(columns), 4)
    high = -(-len(columns) // wide)
    figure = new_figure(2.0 + 1.9 * wide, 0.9 + high * (0.75 + 0.2 * len(rows)), plain(title), _LEGEND)
    panels = figure.subplots(high, wide, sharey=True, squeeze=False)
    for axes in panels.flat[len(columns) :]:
        axes.set_axis_off()
    for axes, column in zip(panels.flat, columns, strict=False):
        shown = [p for p in pairs if p.column == column]
        places = np.array([rows.index(p.row) for p in shown], dtype=float)
        _dots(axes, places + 0.14, [(p.published, p.published_std) for p in shown], ORANGE, "none")
        _dots(axes, places - 0.14, [(p.measured, p.measured_std) for p in shown], BLUE, BLUE)
        axes.set_yticks(range(len(rows)), [plain(r) for r in rows])
        axes.set_title(plain(column))
        axes.set_ylim(-0.6, len(rows) - 0.4)
        _lines(axes, len(rows))
        axes.tick_params(axis="x", labelsize=7)
        log_axis(axes, "x", [v for p in shown for v in (p.published, p.measured) if v is not None])
    return figure


_LEGEND = "filled: ours, open: published;  bars: ± 1 s.d."


def _dots(
    axes: Axes, places: np.ndarray, values: Sequence[tuple[float | None, float | None]], colour: str, face: str
) -> None:
    """One value with its bar per place; missing values are not drawn."""
    mean, std = (np.array([math.nan if x is None else x for x in each]) for each in zip(*values, strict=True))
    kept = np.isfinite(mean)
    if kept.any():
        mean, place, half = mean[kept], places[kept], np.nan_to_num(std[kept], posinf=0.0)
        _bars(axes, mean - half, mean + half, place, color=colour, linewidth=0.9)
        axes.plot(mean, place, "o", markersize=4, color=colour, markerfacecolor=face)
