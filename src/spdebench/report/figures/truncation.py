"""How the truncation J of the noise changes the solution: the paper's figure of std and energy for phi41."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from spdebench.equations import Equation
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.report.figures import sums
from spdebench.report.style import (
    BAND,
    BLUE,
    ORANGE,
    legend_below,
    line_with_band,
    new_figure,
    remark_of,
    shades,
    styled,
    symbol_of,
    title_of,
)
from spdebench.solvers import simulate

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRUNCATIONS = (2, 8, 32, 64, 128, 256)
Curve = tuple[np.ndarray, np.ndarray]
"""Values at the stored times and their standard errors."""


@dataclass(frozen=True)
class Response:
    """std(t) = mean_x std_n u and energy(t) = mean_n mean_x u^2 at one J, and whether its noise is aliased."""

    truncation: int
    std: Curve
    energy: Curve
    aliased: bool


@styled
def plot_truncation(
    equation: Equation, truncations: Sequence[int] = TRUNCATIONS, n: int = 200, seed: int = 0
) -> Figure:
    """std(t) = mean_x std_n u(t, x) and energy(t) = mean_n mean_x u(t, x)^2 for every J, and both at T against J.

    All J use the same n realisations of the noise; a smaller J has fewer modes. Bands and bars are two standard errors.
    Dashed lines and open markers: J exceeds the grid, and high modes alias onto low ones (edition paper).
    """
    responses = truncation_responses(equation, tuple(truncations), n, seed)
    remark = remark_of(equation) + f", seed {seed}; the same noise for every J;  bands: ± 2 s.e."
    figure = new_figure(10.0, 4.2, title_of(equation, n), remark)
    left, centre, right = figure.subplots(1, 3, width_ratios=(1, 1, 0.8))
    letter = symbol_of(equation)
    times = equation.times.numpy()
    for response, colour in zip(responses, shades(len(responses)), strict=True):
        label = f"$J$ = {response.truncation}" + (" (aliased)" if response.aliased else "")
        options: dict[str, Any] = {"color": colour, "linestyle": "--" if response.aliased else "-", "label": label}
        line_with_band(left, times, *response.std, **options)
        line_with_band(centre, times, *response.energy, **options)
    left.set(title=f"std: pointwise, mean over $x$ of ${letter}$", xlabel="time $t$", xlim=(0, times[-1]))
    centre.set(title=f"energy: mean of ${letter}^2$", xlabel="time $t$", xlim=(0, times[-1]))
    for axes in (left, centre):
        axes.set_ylim(bottom=0)
    _draw_final(right, responses)
    legend_below(figure, left, right, columns=6)
    return figure


def truncation_table(
    equation: Equation, truncations: Sequence[int] = TRUNCATIONS, n: int = 200, seed: int = 0
) -> pandas.DataFrame:
    """The values of the figure at T: columns J, std, std_se, energy, energy_se, aliased. Each J is solved once."""
    import pandas

    rows = [
        {
            "J": r.truncation,
            "std": r.std[0][-1],
            "std_se": r.std[1][-1],
            "energy": r.energy[0][-1],
            "energy_se": r.energy[1][-1],
            "aliased": r.aliased,
        }
        for r in truncation_responses(equation, tuple(truncations), n, seed)
    ]
    return pandas.DataFrame(rows)


@functools.lru_cache(maxsize=8)
def truncation_responses(equation: Equation, truncations: tuple[int, ...], n: int, seed: int) -> tuple[Response, ...]:
    """Solve for samples 0..n-1 at every J with the same noise; memory does not grow with n."""
    if n < 2:
        raise UserError(f"a standard deviation needs at least 2 samples, got n={n}")
    responses = []
    for truncation in truncations:
        member = equation.replace(truncation=truncation)
        gathered = sums.accumulate(_solutions(member, n, seed), n, sums.moments)
        std, energy = gathered.estimate(sums.deviation), gathered.estimate(sums.energy)
        responses.append(Response(truncation, std, energy, bool(member.aliasing_message())))
    return tuple(responses)


def _solutions(equation: Equation, n: int, seed: int) -> Iterator[np.ndarray]:
    """u of samples 0..n-1 in batches."""
    for start in range(0, n, sums.BATCH):
        with without_aliasing_warning():  # the figure marks aliasing
            rows = range(start, min(n, start + sums.BATCH))
            yield simulate(equation, seed, rows, out_dtype=torch.float64).u.numpy()


def _draw_final(axes: Axes, responses: Sequence[Response]) -> None:
    """Draw std(T) and energy(T) against J."""
    for name, colour in (("std", BLUE), ("energy", ORANGE)):
        for response in responses:
            value, error = (float(a[-1]) for a in getattr(response, name))
            face = "white" if response.aliased else colour
            axes.errorbar(
                response.truncation,
                value,
                yerr=BAND * error,
                fmt="o",
                markersize=4,
                color=colour,
                markerfacecolor=face,
                label=name if response is responses[0] else None,
            )
    axes.set_xscale("log", base=2)
    ticks = [r.truncation for r in responses]
    axes.set_xticks(ticks, [str(t) for t in ticks])
    axes.set(title="at $t = T$ (open: aliased)", xlabel="truncation $J$")
    axes.set_ylim(bottom=0)
