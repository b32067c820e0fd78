"""A figure of mean, variance and energy of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spdebench.data import Dataset
from spdebench.report.figures import sums
from spdebench.report.style import (
    BLUE,
    ORANGE,
    legend_above,
    line_with_band,
    new_figure,
    remark_of,
    styled,
    symbol_of,
    title_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


CONSERVED = 1e-3
"""The least height of the panel of the mean, as a fraction of the standard deviation."""


@styled
def plot_statistics(dataset: Dataset) -> Figure:
    """mean_n u(t, x) and Var_n u(t, x) against x at t = T/2 and T; mean_x mean_n u, mean_x std_n u and
    mean_n mean_x u^2 against t. Bands are two standard errors.

    In 2-D and 3-D the upper row shows the values on the middle line along the first axis.
    """
    times, grid, letter = dataset.times, dataset.grid, symbol_of(dataset)
    gathered = sums.accumulate(sums.batches(dataset, "u"), len(dataset), sums.moments)
    figure = new_figure(9.0, 5.6, title_of(dataset, len(dataset)), remark_of(dataset) + ";  bands: ± 2 s.e.")
    cells = figure.add_gridspec(2, 6)
    middle = tuple(m // 2 for m in grid.points[1:])
    where = "" if grid.dim == 1 else ", middle line"
    x, last = grid.coordinates(0).numpy(), len(times) - 1
    panels = ((sums.mean, rf"mean of ${letter}(t, x)$"), (sums.variance, rf"variance of ${letter}(t, x)$"))
    for i, (statistic, name) in enumerate(panels):
        axes = figure.add_subplot(cells[0, 3 * i : 3 * i + 3])
        value, error = gathered.estimate(statistic)
        for k, colour in ((last // 2, BLUE), (last, ORANGE)):
            on_line, its_error = (a[k][:, *middle] for a in (value, error))
            line_with_band(axes, x, on_line, its_error, color=colour, label=f"$t$ = {times[k]:.3g}")
        axes.set(title=name + where, xlabel="$x$", xlim=(grid.lower[0], grid.upper[0]))
        if statistic is sums.variance:
            axes.set_ylim(bottom=0)
        legend_above(axes, 2)
    curves = (
        (sums.mean_over_space, "mean over $x$ and samples"),
        (sums.deviation, "standard deviation, mean over $x$"),
        (sums.energy, f"energy, mean of ${letter}^2$"),
    )
    for i, (statistic, name) in enumerate(curves):
        axes = figure.add_subplot(cells[1, 2 * i : 2 * i + 2])
        value, error = gathered.estimate(statistic)
        line_with_band(axes, np.asarray(times), value, error, color=BLUE)
        axes.set(title=name, xlabel="time $t$", xlim=(0, times[-1]))
        if statistic is not sums.mean_over_space:
            axes.set_ylim(bottom=0)
            continue
        low, high = axes.get_ylim()
        least = CONSERVED * float(np.max(gathered.estimate(sums.deviation)[0]))
        if high - low < least:  # the mean is conserved: its rounding errors are not shown
            axes.set_ylim((low + high - least) / 2, (low + high + least) / 2)
    return figure
