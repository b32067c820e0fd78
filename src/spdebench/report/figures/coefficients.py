"""Coefficients c_j(k) over k: those fitted by the model `step`, and those of the solver that generated the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spdebench.models.step import StepModel
from spdebench.models.step.report import generator_values, shown_modes
from spdebench.report.style import BLUE, GREY, ORANGE, legend_below, new_figure, styled, title_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 3


@styled
def plot_coefficients(model: StepModel) -> Figure:
    """Real parts (and, where they matter, imaginary parts) of the coefficients of the first stage, one panel per term.

    Bars are 95 % bootstrap intervals over samples; lines are the solver's coefficients where a formula is known.
    """
    found, intervals, known = model.coefficients(), model.coefficient_intervals(), generator_values(model.setting)
    grid, equation = model.setting.grid, model.setting.equation
    places = shown_modes(grid)
    modes = grid.mode_numbers(grid.dim - 1)[places % grid.spectral_shape[-1]].numpy()
    rows = -(-len(found) // COLUMNS)
    title = f"step: coefficients   {title_of(equation, 0).rpartition('n =')[0]}" if equation else "step: coefficients"
    figure = new_figure(9.0, 1.1 + 2.0 * rows, title.rstrip(), f"chosen: {model.plan.label};  bars: 95 % over samples")
    panels = figure.subplots(rows, COLUMNS, squeeze=False).flatten()
    for axes in panels[len(found) :]:
        axes.remove()
    for axes, (name, weights) in zip(panels, found.items(), strict=False):
        value = weights.flatten()[places].cpu().numpy()
        low, high = intervals[name].cpu().numpy()
        exact = known[name].flatten()[places].numpy() if name in known else None
        parts = [("real", BLUE)] + ([("imag", ORANGE)] if abs(value.imag).max() > 0.01 * abs(value).max() else [])
        for part, colour in parts:
            if exact is not None:
                axes.plot(modes, getattr(exact, part), color=GREY, label="solver")
            ends = getattr(low, part), getattr(high, part)
            axes.vlines(modes, *ends, color=colour, linewidth=0.8)
            axes.plot(
                modes,
                getattr(value, part),
                ".",
                color=colour,
                markersize=3,
                label={"real": "real part", "imag": "imaginary part"}[part],
            )
        axes.set(title=name, xlabel="mode $k$")
    legend_below(figure, *panels[: len(found)])
    return figure
