"""Figures of the solution in space and time and of its spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from spdebench.data import Dataset
from spdebench.report.figures import modes, sums
from spdebench.report.style import (
    GREY,
    INK,
    legend_beside,
    line_with_band,
    new_figure,
    picture,
    plane,
    remark_of,
    rows_shown,
    set_log_limits,
    shades,
    styled,
    symbol_of,
    symmetric_limit,
    title_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DECADES = 12  # decades shown below the maximum of a spectrum; float32 does not resolve more


# --- space and time -----------------------------------------------------------------------------------------------
@styled
def plot_solution(dataset: Dataset, samples: int = 3) -> Figure:
    """u(t, x) of some samples on one symmetric colour scale.

    1-D: x to the right and t upwards; below each picture are the slices u(t, .) at t = 0, T/2, T. 2-D: frames at
    t = 0, T/3, 2T/3, T, one row per sample. 3-D: the same for the middle plane of the last axis.
    """
    u = dataset.read("u", 0, rows_shown(dataset, samples))
    letter, limit = symbol_of(dataset), symmetric_limit(u)
    title, remark = title_of(dataset, len(dataset)), remark_of(dataset)
    if dataset.grid.dim > 1:
        figure = new_figure(9.0, 1.1 + 1.75 * len(u), title, remark)
        _frames(figure, dataset, u, limit, letter)
        return figure
    figure = new_figure(9.0, 5.8, title, remark)
    above, below = figure.subplots(2, len(u), sharex=True, sharey="row", squeeze=False, height_ratios=(1.3, 1))
    picture_row(above, dataset, u, limit, f"${letter}(t, x)$")
    _slices(below, dataset, u, letter)
    return figure


def picture_row(
    row: Sequence[Axes], dataset: Dataset, values: np.ndarray, limit: float, label: str, noise: bool = False
) -> None:
    """One picture per sample: space and time in 1-D, the final frame in 2-D and 3-D.

    For noise each pixel row is an interval; for a solution it is a frame, centred at its time.
    """
    grid, end = dataset.grid, float(dataset.times[-1])
    for i, (axes, field) in enumerate(zip(row, values, strict=True)):
        if grid.dim == 1:
            half = 0.0 if noise else 0.5 * end / (len(field) - 1)
            image = picture(axes, field, (grid.lower[0], grid.upper[0], -half, end + half), limit)
            axes.set(ylim=(0, end), title=f"sample {i}")
        else:
            image = picture(axes, plane(field[-1]), _box(dataset), limit)
            axes.set(title=f"sample {i}, $t$ = {end:.3g}", aspect="equal")
    row[0].set_ylabel("time $t$" if grid.dim == 1 else "$y$")
    label += ", middle plane" if grid.dim == 3 else ""
    row[0].figure.colorbar(image, ax=list(row), label=label, extend="both", aspect=18, pad=0.02)


def _slices(row: Sequence[Axes], dataset: Dataset, u: np.ndarray, letter: str) -> None:
    """Draw u(t, .) at t = 0, T/2, T below the pictures."""
    last = u.shape[1] - 1
    x = dataset.grid.coordinates(0).numpy()
    for axes, field in zip(row, u, strict=True):
        axes.axhline(0, color=GREY, linewidth=0.5, zorder=0)
        for k, colour in zip((0, last // 2, last), shades(3), strict=True):
            axes.plot(x, field[k], color=colour, linewidth=1.0, label=f"$t$ = {dataset.times[k]:.3g}")
        axes.set(xlabel="$x$", xlim=(dataset.grid.lower[0], dataset.grid.upper[0]))
    row[0].set_ylabel(f"${letter}(t, x)$")
    legend_beside(row[-1]).set_in_layout(False)  # it is below the colour bar


def _frames(figure: Figure, dataset: Dataset, u: np.ndarray, limit: float, letter: str) -> None:
    """Draw frames of each sample at t = 0, T/3, 2T/3, T."""
    picks = np.round(np.linspace(0, u.shape[1] - 1, 4)).astype(int)
    table = figure.subplots(len(u), 4, sharex=True, sharey=True, squeeze=False)
    for i, row in enumerate(table):
        for axes, k in zip(row, picks, strict=True):
            image = picture(axes, plane(u[i, k]), _box(dataset), limit)
            axes.set(aspect="equal", title=f"$t$ = {dataset.times[k]:.3g}" if i == 0 else "")
        row[0].set_ylabel(f"sample {i}\n$y$")
    for axes in table[-1]:
        axes.set_xlabel("$x$")
    where = f"${letter}$" + (", middle plane" if dataset.grid.dim == 3 else "")
    figure.colorbar(image, ax=table.ravel().tolist(), label=where, extend="both", aspect=25, pad=0.02)


def _box(dataset: Dataset) -> tuple[float, float, float, float]:
    """The extent of a picture of x and y."""
    grid = dataset.grid
    return grid.lower[0], grid.upper[0], grid.lower[1], grid.upper[1]


# --- scales -------------------------------------------------------------------------------------------------------
@styled
def plot_spectrum(dataset: Dataset) -> Figure:
    """S(k) = E <u(t), e_k>^2, mean over samples and over the modes of shell k, at t = T/8, T/4, T/2, T; both axes log.

    Bands are two standard errors. The dashed line is the exact value at T for the linear equation in continuous time,
    S_k(0) e^{-2aT} + sigma^2 lambda_k (1 - e^{-2aT})/(2a) with a = -Re L(k). For phi41 and kpz (white noise) it is
    proportional to k^-2. The noise is constant on each interval, and modes with |kappa|^2 dt > 1 relax within one
    interval, so the data lie below the dashed line there; the dotted line marks this k.
    """
    grid, last = dataset.grid, len(dataset.times) - 1
    k, matrix = modes.shells(grid), modes.shell_matrix(grid)
    picks = sorted({0, *(max(1, last // part) for part in (8, 4, 2, 1))})

    def features(u: np.ndarray) -> tuple[np.ndarray, ...]:
        return (modes.power(u[:, picks], grid, matrix),)

    value, error = sums.accumulate(sums.batches(dataset, "u"), len(dataset), features).estimate(sums.mean)
    figure = new_figure(7.8, 4.6, title_of(dataset, len(dataset)), remark_of(dataset))
    axes = figure.subplots()
    inner = k > 0
    for row, colour in zip(range(1, len(picks)), shades(len(picks) - 1), strict=True):
        label = f"$t$ = {dataset.times[picks[row]]:.3g}"
        line_with_band(axes, k[inner], value[row, inner], error[row, inner], color=colour, label=label)
    axes.set(xlabel="wave number $k$", xlim=(0.9, 1.1 * k[-1]))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylabel(rf"$E\,\langle {symbol_of(dataset)}(t), e_k\rangle^2$")
    set_log_limits(axes, value[1:, inner], DECADES)
    if not dataset.imported:
        _draw_theory(axes, dataset, k, value[0])
    legend_beside(axes)
    return figure


def _draw_theory(axes: Axes, dataset: Dataset, k: np.ndarray, initial: np.ndarray) -> None:
    """Draw the spectrum of the linear equation at T, and the k beyond which the noise interval damps."""
    equation, inner = dataset.equation, k > 0
    theory = modes.linear_power(equation, initial, equation.horizon)
    if theory is None:
        return
    eigenvalues = modes.noise_power(equation)[0][inner]
    white = np.ptp(eigenvalues[eigenvalues > 0]) < 1e-9
    parabolic = equation.rule is not None and equation.rule.kernel_degree == 2
    factors = ("" if white else r"\lambda_k ") + ("k^{-2}" if parabolic else "")
    law = rf", $\propto {factors}$" if factors else ""
    axes.plot(k[inner], theory[inner], "--", color=INK, linewidth=1.0, label=f"linear equation at $T${law}")
    edge = modes.damping_shell(equation)
    if parabolic and 1 < edge < k[-1]:
        axes.axvline(edge, color=GREY, linestyle=":", linewidth=1.0)
        note = "beyond $|\\kappa|^2 \\Delta t = 1$\nthe noise step $\\Delta t$ damps"
        axes.annotate(
            note,
            (edge, 0),
            (-4, 4),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="right",
            color=GREY,
            fontsize=8,
        )
