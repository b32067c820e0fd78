"""Figures of a predicted law: a fan over time, members next to true members, and the rank histogram."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spdebench.grids import Grid
from spdebench.report.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    legend_below,
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

BANDS = ((0.05, 0.95, 0.14), (0.25, 0.75, 0.35))
"""Quantiles of the bands of a fan, and how dark each is; a band ends where the next one begins."""
LINES = 16
"""Members of an ensemble that are drawn as lines."""
PANELS = 3
"""The most inputs that a fan shows."""
SURE = 0.9
"""The probability that a bin of the rank histogram of a calibrated law is within the band."""


@dataclass(frozen=True)
class Laws:
    """True and predicted members (n, M, T, X..) and (n, m, T, X..) of the same n inputs, with title and remark."""

    truth: np.ndarray
    predicted: np.ndarray
    times: Sequence[float]
    grid: Grid
    title: str
    remark: str

    @property
    def drawn(self) -> str:
        """A text on how many members are drawn as lines, if not all of them are."""
        return f", {LINES} of them as lines" if max(self.truth.shape[1], self.predicted.shape[1]) > LINES else ""

    @property
    def middle(self) -> tuple[int, ...]:
        """The point in the middle of the grid."""
        return tuple(n // 2 for n in self.grid.points)


@styled
def plot_fan(laws: Laws) -> Figure:
    """u(t, x0) of up to three inputs: true and predicted members, and bands with 50 % and 90 % of the latter."""
    count = min(PANELS, len(laws.truth))
    place = ", ".join(f"{float(laws.grid.coordinates(k)[i]):.3g}" for k, i in enumerate(laws.middle))
    remark = f"{laws.remark}{laws.drawn};  u at the point x = {place}"
    figure = new_figure(2.5 * count + 0.6, 3.2, plain(laws.title, 110), remark)
    panels = figure.subplots(1, count, sharey=True, squeeze=False)[0]
    times = np.asarray(laws.times)
    for k, axes in enumerate(panels):
        truth, predicted = (a[k][(slice(None), slice(None), *laws.middle)] for a in (laws.truth, laws.predicted))
        lines = axes.plot(times, truth[:LINES].T, color=ORANGE, linewidth=0.6, alpha=0.6)
        lines[0].set_label("true members")
        _bands(axes, times, predicted)
        axes.set(title=f"input {k + 1}", xlabel="time $t$", xlim=(times[0], times[-1]))
        axes.locator_params(axis="x", nbins=3)
    panels[0].set_ylabel("$u(t, x_0)$")
    legend_below(figure, *panels)
    return figure


def _bands(axes: Axes, times: np.ndarray, members: np.ndarray) -> None:
    """Quantiles of the members (m, T) around their median; a single member is one line."""
    middle = "predicted" if len(members) == 1 else "median of the predicted members"
    axes.plot(times, np.median(members, axis=0), color=BLUE, label=middle)
    if len(members) > 1:
        lines = axes.plot(times, members[:LINES].T, color=BLUE, linewidth=0.5, alpha=0.5)
        lines[0].set_label("predicted members")
        ends = [np.quantile(members, (low, high), axis=0) for low, high, _ in BANDS]
        for (low, high, alpha), (bottom, top), inner in zip(BANDS, ends, [*ends[1:], None], strict=True):
            sides = [(bottom, top)] if inner is None else [(bottom, inner[0]), (inner[1], top)]
            for k, side in enumerate(sides):
                label = "" if k else f"{100 * (high - low):.0f} % of them"
                axes.fill_between(times, *side, color=BLUE, alpha=alpha, linewidth=0, zorder=0.5, label=label)


@styled
def plot_members(laws: Laws) -> Figure:
    """u(T, x) of true members next to predicted members of the same input: lines in 1-D, else pictures."""
    if laws.grid.dim > 1:
        return _pictures(laws)
    count = min(2, len(laws.truth))
    figure = new_figure(
        8.0, 0.9 + 2.1 * count, plain(laws.title, 110), f"{laws.remark}{laws.drawn};  u at the last frame"
    )
    grid = figure.subplots(count, 2, sharex=True, sharey="row", squeeze=False)
    x = laws.grid.coordinates(0).numpy()
    for k, row in enumerate(grid):
        sides = (("true members", laws.truth[k], ORANGE), ("predicted members", laws.predicted[k], BLUE))
        for axes, (name, members, colour) in zip(row, sides, strict=True):
            for line in members[:LINES, -1]:
                axes.plot(x, line, color=colour, linewidth=0.7, alpha=0.55)
            axes.plot(x, members[:, -1].mean(0), color=INK, linewidth=1.4, label="mean of all members")
            axes.set(title=f"input {k + 1}: {name}", xlim=(x[0], x[-1]))
        row[0].set_ylabel("$u(T, x)$")
    for axes in grid[-1]:
        axes.set_xlabel("$x$")
    legend_below(figure, *grid[-1][:1])
    return figure


def _pictures(laws: Laws) -> Figure:
    """Four true members above four predicted ones, on one colour scale; in 3-D the middle plane."""
    rows = (("true", laws.truth[0]), ("predicted", laws.predicted[0]))
    shown = min(4, *(len(members) for _, members in rows))
    figure = new_figure(8.0, 4.6, plain(laws.title, 110), f"{laws.remark};  u at the last frame, first input")
    panels = figure.subplots(2, shown, squeeze=False)
    extent = (laws.grid.lower[0], laws.grid.upper[0], laws.grid.lower[1], laws.grid.upper[1])
    limit = symmetric_limit(np.concatenate([members[:shown, -1].ravel() for _, members in rows]))
    for line, (name, members) in zip(panels, rows, strict=True):
        for k, axes in enumerate(line):
            image = picture(axes, plane(members[k, -1]), extent, limit)
            axes.set(title=f"{name} member {k + 1}", xticks=[], yticks=[], aspect="equal")
    figure.colorbar(image, ax=panels, shrink=0.8)
    return figure


@dataclass(frozen=True)
class Ranks:
    """Counts of the ranks of true values among predicted members, and the p-value that all ranks are equally likely."""

    counts: Sequence[int]
    p_value: float
    title: str


def rank_band(total: int, bins: int) -> tuple[int, int]:
    """The central interval of the binomial law of ``total`` draws with probability 1/bins.

    If all ranks are equally likely, the count of a bin is in it with a probability of at least `SURE`.
    """
    p = 1 / bins
    masses = np.array([math.comb(total, k) * p**k * (1 - p) ** (total - k) for k in range(total + 1)])
    cumulative = np.cumsum(masses)
    tail = (1 - SURE) / 2
    low = int(np.searchsorted(cumulative, tail, side="right"))
    high = int(np.searchsorted(cumulative, 1 - tail, side="left"))
    return low, high


@styled
def plot_ranks(ranks: Ranks) -> Figure:
    """How often the true value has each rank among the predicted members, with the band of a calibrated law."""
    counts = np.asarray(ranks.counts)
    total, bins = int(counts.sum()), len(counts)
    low, high = rank_band(total, bins)
    remark = (
        f"one point, frame and true member for each of {total} inputs;  chi-square test of equal frequencies: p = "
        f"{ranks.p_value:.2g}"
    )
    figure = new_figure(5.4, 3.4, plain(ranks.title, 110), remark)
    axes = figure.subplots()
    axes.bar(np.arange(bins), counts, width=0.9, color=BLUE, alpha=0.75, linewidth=0, label="true values")
    axes.axhspan(low, high, color=GREY, alpha=0.25, linewidth=0, label=f"{100 * SURE:.0f} % band of a calibrated law")
    axes.axhline(total / bins, color=INK, linewidth=1, linestyle="--", label="expected")
    axes.set(xlabel="rank among the predicted members", ylabel="inputs", xlim=(-0.6, bins - 0.4))
    axes.set_xticks([0, bins - 1], ["lowest", "highest"])
    axes.set_ylim(0, 1.12 * max(int(counts.max()), high))
    legend_below(figure, axes)
    return figure


LAW_KINDS: dict[str, tuple[Any, str]] = {
    "fan": (plot_fan, "u(t, x0) of true members, and bands of the predicted law (takes the folder of a run)"),
    "members": (plot_members, "true members next to predicted members at the last frame (takes the folder of a run)"),
    "ranks": (plot_ranks, "ranks of true values among the predicted members (takes the folder of a run)"),
}
"""Pictures of the law that a run predicts."""
