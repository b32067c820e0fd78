"""A figure of the driving noise and of its spectrum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spdebench.data import Dataset
from spdebench.report.figures import modes, sums
from spdebench.report.figures.solution import picture_row
from spdebench.report.style import (
    BAND,
    BLUE,
    ORANGE,
    legend_above,
    new_figure,
    remark_of,
    rows_shown,
    set_log_limits,
    styled,
    symmetric_limit,
    title_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@styled
def plot_noise(dataset: Dataset, samples: int = 3) -> Figure:
    """xi = dW/dt of some samples, and E <dW, e_k>^2/dt for every mode k with its exact value.

    Above: xi in space and time (in 2-D and 3-D at the final time). Below: the mean over samples and intervals with bars
    of two standard errors; the line is the eigenvalue lambda_k, or with aliasing the sum over all modes that alias onto
    k. The title of the lower panel compares the mean over x of Var dW/dt with Tr Q / V. Imported data have no exact
    values.
    """
    count = rows_shown(dataset, samples)
    figure = new_figure(9.0, 5.6, title_of(dataset, len(dataset)), remark_of(dataset))
    cells = figure.add_gridspec(2, count, height_ratios=(1.25, 1))
    row = [figure.add_subplot(cells[0, i]) for i in range(count)]
    for axes in row:
        axes.set_xlabel("$x$")
        axes.tick_params(labelleft=axes is row[0])
    dt = float(dataset.times[1] - dataset.times[0])
    xi = dataset.read("dw", 0, count)[:, 1:] / dt
    picture_row(row, dataset, xi, symmetric_limit(xi, 0.995), r"$\xi = \mathrm{d}W/\mathrm{d}t$", noise=True)
    _draw_law(figure.add_subplot(cells[1, :]), dataset, dt)
    return figure


def _draw_law(axes: Axes, dataset: Dataset, dt: float) -> None:
    """Power by mode with bars of two standard errors, and the exact values if the equation is known."""
    grid, k = dataset.grid, modes.shells(dataset.grid)
    matrix = modes.shell_matrix(grid)

    def features(dw: np.ndarray) -> tuple[np.ndarray, ...]:
        increments = dw[:, 1:]
        square = (increments**2).reshape(len(dw), -1).mean(1, keepdims=True)
        return (np.concatenate((modes.power(increments, grid, matrix).mean(1), square), axis=1) / dt,)

    value, error = sums.accumulate(sums.batches(dataset, "dw"), len(dataset), features).estimate(sums.mean)
    bars = BAND * error[:-1] if np.isfinite(error).all() else None
    label = "data" if bars is None else f"data ± {BAND:g} s.e."
    axes.errorbar(k, value[:-1], yerr=bars, fmt="o", markersize=3, elinewidth=0.9, color=BLUE, label=label)
    heading = f"Var dW / dt, mean over x: {value[-1]:.4g}" + ("" if bars is None else f" ± {error[-1]:.1g} (s.e.)")
    if not dataset.imported:
        exact, mean_square = modes.noise_power(dataset.equation)
        aliased = ", with aliasing" if dataset.equation.aliasing_message() else ""
        axes.plot(k, exact, color=ORANGE, zorder=1, label=rf"exact $\lambda_k${aliased}")
        heading += f",  exact {mean_square:.4g}"
    spectrum = value[:-1]
    if spectrum.max() > 20 * spectrum[spectrum > 1e-9 * spectrum.max()].min(initial=np.inf):
        set_log_limits(axes, spectrum, 9)
    else:
        axes.set_ylim(0, 1.35 * spectrum.max() or None)
    axes.set(title=heading, xlabel="mode $k$", xlim=(-1, k[-1] + 1))
    axes.set_ylabel(r"$E\,\langle \mathrm{d}W, e_k\rangle^2 / \mathrm{d}t$")
    legend_above(axes, 2)
