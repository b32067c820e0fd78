"""A figure of the effect of renormalisation: the same noise with and without the counter-term, and for increasing J.

It answers two questions. How much does the counter-term change a dataset as the paper defines it (one sample, solved
twice)? And do solutions with it converge as J increases, while solutions without it do not? For the second question low
modes are compared for the same noise at every J, with sigma, horizon and steps at which the effect is resolved.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from spdebench.equations import Equation
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.grids import Grid
from spdebench.report.style import (
    BAND,
    BLUE,
    GREY,
    ORANGE,
    SEQUENTIAL,
    legend_beside,
    new_figure,
    picture,
    plane,
    shades,
    styled,
    symbol_of,
    symmetric_limit,
    title_of,
)
from spdebench.solvers import simulate

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES = {"exact": ("with counter-term", BLUE), "none": ("without", ORANGE)}


# --- settings -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class StudySetting:
    """Parameters at which the effect is resolved: sigma = 1 and a horizon long enough for the counter-term to act.

    ``discretise`` maps the horizon, J and the largest J to edition, points and steps; the step is the same for every J.
    The modes |k_i| <= ``low`` are compared, which the noise of every J contains.
    """

    truncations: tuple[int, ...]
    low: int
    horizon: float
    n: int
    discretise: Callable[[float, int, int], dict[str, Any]]

    def member(self, equation: Equation, truncation: int, top: int, renormalisation: str) -> Equation:
        """The equation of the study at one J; all other fields are those of ``equation``."""
        values = self.discretise(self.horizon, truncation, top)
        values |= {"frames": values["steps"], "solve_points": values.get("solve_points", 0), "substeps": 1}
        return equation.replace(
            sigma=1.0, horizon=self.horizon, truncation=truncation, renormalisation=renormalisation, **values
        )


def _common_square(horizon: float, truncation: int, top: int) -> dict[str, Any]:
    """phi42: one grid that resolves every J and the paper's scheme, a tenth below its stability limit 8 N^2 dt < 2."""
    return {"edition": "paper", "points": top + 2, "steps": math.ceil(4.4 * horizon * (top + 2) ** 2)}


def _own_lattice(horizon: float, truncation: int, top: int) -> dict[str, Any]:
    """phi43: every J has its own lattice of J+1 points per axis."""
    return {"edition": "paper", "points": truncation + 1, "steps": 512}


def _common_line(horizon: float, truncation: int, top: int) -> dict[str, Any]:
    """kpz: Galerkin modes on one grid that resolves every J; 4 pi^2 (J/2)^2 dt is 5/4 at the largest J."""
    steps = math.ceil(horizon * (math.pi * top) ** 2 / 1.25)
    return {"edition": "converged", "points": 64, "solve_points": max(64, 2 * top), "steps": steps}


SETTINGS = {
    "phi42": StudySetting((4, 8, 16, 32), 2, 0.25, 8, _common_square),
    "phi43": StudySetting((4, 8, 16, 32), 2, 0.5, 8, _own_lattice),
    "kpz": StudySetting((8, 16, 32, 64), 4, 0.05, 16, _common_line),
}


# --- solving ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Outcome:
    """The low modes of u(T) at one J: coefficients (samples, modes) on ``grid``."""

    truncation: int
    low: Tensor
    grid: Grid

    def drawn(self, finer: int = 16) -> np.ndarray:
        """The low modes of sample 0 at the points of a finer grid."""
        fine = self.grid.with_points(finer * (self.grid.points[0] // 2))
        return fine.inverse(self.grid.resize(self.low[0], fine)).numpy()


def solve_members(
    equation: Equation, truncations: Sequence[int] | None = None, n: int | None = None, seed: int = 0
) -> dict[str, tuple[Outcome, ...]]:
    """Solutions for samples 0..n-1 with the same noise: one outcome for every J, by kind of renormalisation."""
    if equation.name not in SETTINGS:
        known = ", ".join(SETTINGS)
        raise UserError(f"{equation.name} needs no renormalisation; this study is for {known}")
    setting = SETTINGS[equation.name]
    chosen = tuple(sorted(truncations)) if truncations else setting.truncations
    if len(chosen) < 2 or chosen[0] < 2 * setting.low:
        raise UserError(f"the study compares at least two truncations of {2 * setting.low} or more, got {chosen}")
    return {kind: _solve_family(equation, chosen, n or setting.n, seed, kind) for kind in LINES}


@functools.lru_cache(maxsize=16)
def _solve_family(
    equation: Equation, truncations: tuple[int, ...], n: int, seed: int, renormalisation: str
) -> tuple[Outcome, ...]:
    """The outcomes of one kind of renormalisation for every J; kept for later calls."""
    setting, outcomes = SETTINGS[equation.name], []
    for truncation in truncations:
        member = setting.member(equation, truncation, truncations[-1], renormalisation)
        u = simulate(member, seed, range(n), out_dtype=torch.float64, every=member.frames).u[:, -1]
        coarse = member.grid.with_points(2 * setting.low + 1)
        outcomes.append(Outcome(truncation, member.grid.resize(member.grid.transform(u), coarse), coarse))
    return tuple(outcomes)


def renormalisation_table(
    equation: Equation, truncations: Sequence[int] | None = None, n: int | None = None, seed: int = 0
) -> pandas.DataFrame:
    """(E |P(u_J' - u_J)|^2 / E |P u|^2)^(1/2) at T for successive J < J', with and without renormalisation.

    P projects onto the low modes, and u in the denominator is the renormalised solution at the largest J. Columns: J,
    next_J, renormalisation, distance, distance_se (standard error over the n samples). Solutions are computed once.
    """
    import pandas

    families = solve_members(equation, truncations, n, seed)
    size = float(_energy(families["exact"][-1].low, families["exact"][-1].grid).mean())
    rows = []
    for kind, family in families.items():
        for coarse, fine in itertools.pairwise(family):
            squared = (_energy(fine.low - coarse.low, fine.grid) / size).numpy()
            distance = math.sqrt(squared.mean())
            error = squared.std(ddof=1) / math.sqrt(len(squared)) / (2 * distance) if len(squared) > 1 else math.nan
            rows.append((coarse.truncation, fine.truncation, kind, distance, error))
    return pandas.DataFrame(rows, columns=["J", "next_J", "renormalisation", "distance", "distance_se"])


def _energy(low: Tensor, grid: Grid) -> Tensor:
    """mean_x u^2 of each sample."""
    return (grid.multiplicity() * low.abs() ** 2).flatten(1).sum(1)


def _counterterm(equation: Equation) -> str:
    """The counter-term of the equation, or the exact one if it has none."""
    kind = dataclasses.asdict(equation)["renormalisation"]
    return "exact" if kind == "none" else kind


def paired_paths(equation: Equation, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sample 0 of the given equation with and without its counter-term: frames (T, X..)."""
    pair = []
    for renormalisation in (_counterterm(equation), "none"):
        with without_aliasing_warning():  # the figure marks aliasing
            member = equation.replace(renormalisation=renormalisation)
            pair.append(simulate(member, seed, range(1), out_dtype=torch.float64).u[0].numpy())
    return pair[0], pair[1]


# --- drawing ------------------------------------------------------------------------------------------------------
@styled
def plot_renormalisation(
    equation: Equation, truncations: Sequence[int] | None = None, n: int | None = None, seed: int = 0
) -> Figure:
    """Above: one sample with and without the counter-term, and |u_with - u_without|/rms_x u_with. Below: increasing J.

    The upper pictures show the given equation: in 1-D space and time, in 2-D the final frame, in 3-D its middle plane.
    To their right are the distances of `renormalisation_table`. The lower part shows the study of `SETTINGS`: the low
    modes of the change from each J to the next, as pictures or, in 1-D, as lines.
    """
    families = solve_members(equation, truncations, n, seed)
    samples = len(families["exact"][0].low)
    height = 6.3 if equation.dim == 1 else 7.7
    figure = new_figure(10.0, height, title_of(equation, samples), _remark(equation, families))
    parts: Any = figure.subfigures(2, 1, height_ratios=(2.5, height - 3.6))
    above, beneath = parts
    row = above.subplots(1, 4, width_ratios=(1, 1, 1, 1.1))
    _draw_pair(row[:3], equation, *paired_paths(equation, seed))
    _draw_distances(row[3], renormalisation_table(equation, truncations, n, seed))
    above.legend(*row[3].get_legend_handles_labels(), loc="outside lower right", ncols=2)
    if equation.dim == 1:
        _draw_lines(beneath.subplots(1, 2, sharey=True), equation, families)
    else:
        _draw_changes(beneath.subplots(2, len(families["exact"]), sharex=True, sharey=True), equation, families)
    return figure


def _remark(equation: Equation, families: dict[str, tuple[Outcome, ...]]) -> str:
    """The remark below the title, which explains the figure."""
    setting, chosen = SETTINGS[equation.name], [o.truncation for o in families["exact"]]
    member = setting.member(equation, chosen[-1], chosen[-1], "exact")
    points = "(J+1)" if equation.name == "phi43" else str(member.solve_points)
    power = {1: "", 2: "²", 3: "³"}[equation.dim]
    mark = " (aliased)" if equation.aliasing_message() else ""
    return (
        "The noise has J modes. As J grows, a product of rough terms in the equation grows without bound, unless a "
        f"counter-term compensates it. Top: one path at J = {equation.truncation}{mark}, T = {equation.horizon:.3g}, "
        f"with and without the counter-term ({_counterterm(equation)}), and their difference. Top right and bottom: "
        f"how much the low modes (|k| ≤ {setting.low}) of the solution change from one J to the next. With the "
        "counter-term the changes fall, and the solution has a limit; without it they do not. "
        f"(σ = 1, T = {setting.horizon:g}, {member.steps} steps, {points}{power} points, exact counter-term, the same "
        "noise for every J; bars: ± 2 s.e.)"
    )


def _draw_pair(row: Sequence[Axes], equation: Equation, with_term: np.ndarray, without: np.ndarray) -> None:
    """Draw the two solutions on one colour scale, and their relative difference."""
    grid, letter = equation.grid, symbol_of(equation)
    rms = np.sqrt((with_term**2).mean(tuple(range(1, 1 + grid.dim)), keepdims=True))
    relative = np.abs(with_term - without) / np.where(rms > 0, rms, 1.0)
    first, second, third = (_rows_and_columns(field, grid) for field in (with_term, without, relative))
    low, high = (0.0, equation.horizon) if grid.dim == 1 else (grid.lower[1], grid.upper[1])
    box, limit = (grid.lower[0], grid.upper[0], low, high), symmetric_limit(np.stack((first, second)))
    picture(row[0], first, box, limit)
    image = picture(row[1], second, box, limit)
    top = float(np.quantile(third, 0.999)) or 1.0
    ratio = row[2].imshow(third, extent=box, origin="lower", aspect="auto", cmap=SEQUENTIAL, vmin=0, vmax=top)
    ratio_title = f"|difference| / rms ({_rms(relative[-1]):.2g} at $T$)"
    for axes, word in zip(row, (f"${letter}$ with counter-term", f"${letter}$ without", ratio_title), strict=True):
        axes.set(title=word, xlabel="$x$", aspect="auto" if grid.dim == 1 else "equal")
        axes.set(xticks=grid.lower[:1] + grid.upper[:1], yticks=(low, high) if axes is row[0] else ())
    row[0].set_ylabel("time $t$" if grid.dim == 1 else "$y$")
    row[0].figure.colorbar(image, ax=list(row[:2]), aspect=18, pad=0.02)
    row[2].figure.colorbar(ratio, ax=row[2], aspect=18, pad=0.02)


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt((values**2).mean()))


def _rows_and_columns(field: np.ndarray, grid: Grid) -> np.ndarray:
    """Rows and columns of a picture of (T, X..): time and x, or y and x of the last frame (its middle plane)."""
    return field if grid.dim == 1 else plane(field[-1])


def _draw_distances(axes: Axes, table: pandas.DataFrame) -> None:
    """Draw the distances of `renormalisation_table` against J."""
    for kind, (label, colour) in LINES.items():
        part = table[table["renormalisation"] == kind]
        bars = BAND * part["distance_se"]
        axes.errorbar(part["J"], part["distance"], yerr=bars, fmt="o-", markersize=4, color=colour, label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ticks = sorted(set(table["J"]))
    axes.set_xticks(ticks, [str(t) for t in ticks])
    axes.set(title="change from $J$ to the next $J$", xlabel="truncation $J$", ylabel="relative $L^2$")


def _draw_lines(row: Sequence[Axes], equation: Equation, families: dict[str, tuple[Outcome, ...]]) -> None:
    """Draw the low modes at T against x, one line for each J."""
    letter = symbol_of(equation)
    for axes, (kind, family) in zip(row, families.items(), strict=True):
        for outcome, colour in zip(family, shades(len(family)), strict=True):
            values = np.append(outcome.drawn(), outcome.drawn()[0])  # periodic: the value at x = 1 is that at x = 0
            axes.plot(np.linspace(0, 1, len(values)), values, color=colour, label=f"$J$ = {outcome.truncation}")
        axes.axhline(0, color=GREY, linewidth=0.5, zorder=0)
        axes.set(title=f"low modes of ${letter}(T, x)$ {LINES[kind][0]}, sample 0", xlabel="$x$", xlim=(0, 1))
    legend_beside(row[1])


def _draw_changes(table: np.ndarray, equation: Equation, families: dict[str, tuple[Outcome, ...]]) -> None:
    """Draw the low modes of sample 0 at the largest J, then their change from each J to the next.

    Each column has one colour scale, that of the solution without counter-term.
    """
    grid, figure = equation.grid, table[0, 0].figure
    box = (grid.lower[0], grid.upper[0], grid.lower[1], grid.upper[1])
    lasts = [family[-1] for family in families.values()]
    columns = [(f"low modes, $J$ = {lasts[0].truncation}", [last.drawn() for last in lasts])]
    for pairs in zip(*(itertools.pairwise(f) for f in families.values()), strict=True):
        title = f"change, $J$ = {pairs[0][0].truncation} to {pairs[0][1].truncation}"
        columns.append((title, [b.drawn() - a.drawn() for a, b in pairs]))
    for axes, (title, fields) in zip(table.T, columns, strict=True):
        limit = symmetric_limit(fields[-1], 1.0)
        axes[0].set_title(title)
        for one, field in zip(axes, fields, strict=True):
            image = picture(one, plane(field), box, limit)
            one.set(aspect="equal", xticks=(box[0], box[1]), yticks=(box[2], box[3]))
            label = {"boxstyle": "square,pad=0.2", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
            one.text(0.03, 0.03, f"rms {_rms(field):.1e}", transform=one.transAxes, fontsize=8, bbox=label)
        axes[-1].set_xlabel("$x$")
        figure.colorbar(image, ax=axes.tolist(), aspect=30, pad=0.04, shrink=0.95)
    for axes, kind in zip(table[:, 0], families, strict=True):
        axes.set_ylabel(f"{LINES[kind][0]}\n$y$")
