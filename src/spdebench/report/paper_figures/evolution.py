"""Truth, prediction and error of one test sample over time, on the grid of training and on a finer one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.paper.filled import Entry, Filled
from spdebench.paper.shown_sample import FRAMES, shown_sample
from spdebench.records.fields import FieldData
from spdebench.report.numbers import heading
from spdebench.report.paper_figures.base import TITLE, Drawn, lacking, not_shown
from spdebench.report.style import finer_scale, new_figure, picture, plain, styled, symmetric_limit
from spdebench.training import RunSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTION = (
    "One test sample on both grids: truth and prediction on one colour scale, and their difference on a finer one, "
    "whose factor is printed."
)


@dataclass(frozen=True)
class Shown:
    """One sample on one grid at some times, u (T X Y): true and predicted."""

    name: str
    run: str
    grid: Grid
    times: tuple[float, ...]
    truth: np.ndarray
    predicted: np.ndarray


def draw_evolution(filled: Filled) -> Drawn:
    """From the predicted fields in the record of the first seed; the true ones are solved again from their seed."""
    shown, missing = [], []
    for entry in filled.entries:
        data = next((r.figure_data.fields for r in entry.records if r.figure_data.fields), None)
        if data and entry.cell.column in data.grids:
            shown.append(_sample(entry, data))
        else:
            missing.append(entry)
    absent = not_shown(entry.cell.column for entry in missing)
    return Drawn(_plot(filled, shown, absent) if shown else None, lacking(missing), CAPTION)


def _sample(entry: Entry, data: FieldData) -> Shown:
    """The sample on the grid that the entry is about, at the frames of its record."""
    run, name = entry.cell.runs[0], entry.cell.column
    assert isinstance(run, RunSpec)
    sample, packed = shown_sample(run, name), data.grids[name]
    truth = sample.u[0, list(sample.frames)].numpy()
    if (data.row, data.frames, packed.shape) != (sample.row, sample.frames, truth.shape):
        raise UserError(
            f"the fields of {run.name} in the records are not those of sample {sample.row} at the frames "
            f"{sample.frames}; remove them from the records and make the run again with '{entry.command}'"
        )
    return Shown(name, run.name, sample.equation.grid, data.times, truth, packed.values())


@styled
def _plot(filled: Filled, shown: list[Shown], absent: str) -> Figure:
    """Three rows of pictures per run: truth, prediction and error at a few times."""
    limit = symmetric_limit(np.concatenate([s.truth.ravel() for s in shown]))
    finer = finer_scale(np.concatenate([np.nan_to_num(s.predicted - s.truth).ravel() for s in shown]), limit)
    runs = ", ".join(dict.fromkeys(s.run for s in shown))
    colours = "errors have the colours of the fields" if finer == 1 else f"colours of the errors × {finer:g}"
    remark = f"one test sample;  {colours};  {runs}.{absent}"
    figure = new_figure(1.5 + 1.62 * FRAMES, 0.7 + 4.9 * len(shown), plain(heading(filled), TITLE), remark)
    grid = figure.subplots(3 * len(shown), FRAMES, squeeze=False)
    images = {}
    for k, each in enumerate(shown):
        error = each.predicted - each.truth
        extent = (each.grid.lower[0], each.grid.upper[0], each.grid.lower[1], each.grid.upper[1])
        rows = (("truth", each.truth), ("prediction", each.predicted), ("error", error))
        for line, (name, fields) in enumerate(rows):
            for frame, axes in enumerate(grid[3 * k + line]):
                scale = limit / finer if name == "error" else limit
                images[name] = picture(axes, np.nan_to_num(fields[frame]).T, extent, scale)
                axes.set(xticks=[], yticks=[], aspect="equal")
                if name == "truth":
                    axes.set_title(f"t = {each.times[frame]:.3g}")
                elif name == "error":
                    share = np.linalg.norm(error[frame]) / np.linalg.norm(each.truth[frame])
                    axes.set_title(f"relative $L^2$ {share:.2g}", fontsize=8)
            grid[3 * k + line, 0].set_ylabel(f"{plain(each.name)}\n{name}")
    figure.colorbar(images["truth"], ax=grid, label="vorticity", extend="both", aspect=40, pad=0.02)
    if finer != 1:
        label = f"error, colours × {finer:g}"
        figure.colorbar(images["error"], ax=grid, label=label, extend="both", aspect=40, pad=0.02)
    return figure
