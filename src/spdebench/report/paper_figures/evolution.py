"""Truth, prediction and error of one test sample over time, on the grid of training and on a finer one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spdebench.data import DatasetSpec
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.grids import Grid
from spdebench.paper.base import dataset_of
from spdebench.paper.fill import Entry, Filled
from spdebench.report.numbers import heading
from spdebench.report.paper_figures.base import TITLE, Drawn, FindFolder, lacking
from spdebench.report.style import finer_scale, new_figure, picture, plain, styled, symmetric_limit
from spdebench.solvers import simulate
from spdebench.training import Run, open_run
from spdebench.training.folder import checkpoint_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPTION = (
    "One test sample on both grids: truth and prediction on one colour scale, and their difference on a finer one, "
    "whose factor is printed."
)
TIMES = 5  # columns


@dataclass(frozen=True)
class Shown:
    """One sample on one grid, u (T X Y): true and predicted."""

    name: str
    grid: Grid
    truth: np.ndarray
    predicted: np.ndarray


def draw_evolution(filled: Filled, folder: FindFolder) -> Drawn:
    """From the folder of the first seed's run: its model predicts again on every grid that the table names.

    The sample is solved again from its seed, so that no dataset is needed.
    """
    shown, missing = [], []
    runs: dict[str, Run] = {}
    for entry in filled.entries:
        run = _opened(entry, folder, runs)
        if run is None:
            missing.append(entry)
        else:
            shown.append(_sample(entry, run))
    return Drawn(_plot(filled, shown, next(iter(runs.values()))) if shown else None, lacking(missing), CAPTION)


def _opened(entry: Entry, find: FindFolder, runs: dict[str, Run]) -> Run | None:
    """The run of an entry's first seed, if it is trained."""
    wanted = entry.cell.runs[0]
    folder = find(wanted)
    if wanted.digest not in runs and folder is not None and checkpoint_file(folder, "best").exists():
        run = open_run(folder)
        if run.spec.digest != wanted.digest:
            raise UserError(f"{folder} holds run {run.spec.digest}, not {wanted.digest}; remove it and run it again")
        runs[wanted.digest] = run
    return runs.get(wanted.digest)


def _sample(entry: Entry, run: Run) -> Shown:
    """The first sample of the test part, on the data that the entry is about."""
    own = dataset_of(run.spec.datasets[0])
    data: DatasetSpec = entry.cell.shift or own
    task = run.spec.task_spec
    row = int(task.rows(own.n)["test"][0])
    with without_aliasing_warning():
        path = simulate(data.equation, data.seed, [row], every=task.every)
    stride = task.stride if data.equation.grid.points == own.equation.grid.points else 1
    points: list[Any] = [..., *[slice(None, None, stride)] * data.equation.grid.dim]
    u0, dw, u = (values[tuple(points)] for values in (path.u0, path.dw, path.u))
    predicted = run.predict(u0, dw, equation=data.equation)
    return Shown(entry.cell.column, data.equation.grid, u[0].numpy(), predicted[0])


@styled
def _plot(filled: Filled, shown: list[Shown], run: Run) -> Figure:
    frames = np.linspace(0, len(shown[0].truth) - 1, TIMES + 1).round().astype(int)[1:]
    end = dataset_of(run.spec.datasets[0]).equation.horizon
    limit = symmetric_limit(np.concatenate([s.truth[frames].ravel() for s in shown]))
    errors = [s.predicted[frames] - s.truth[frames] for s in shown]
    finer = finer_scale(np.concatenate([np.nan_to_num(e).ravel() for e in errors]), limit)
    remark = f"one test sample;  colours of the errors × {finer:g};  {run.name}"
    figure = new_figure(1.5 + 1.62 * TIMES, 0.7 + 4.9 * len(shown), plain(heading(filled), TITLE), remark)
    grid = figure.subplots(3 * len(shown), TIMES, squeeze=False)
    images = {}
    for k, each in enumerate(shown):
        error = each.predicted - each.truth
        extent = (each.grid.lower[0], each.grid.upper[0], each.grid.lower[1], each.grid.upper[1])
        rows = (("truth", each.truth), ("prediction", each.predicted), ("error", error))
        for line, (name, fields) in enumerate(rows):
            for axes, frame in zip(grid[3 * k + line], frames, strict=True):
                scale = limit / finer if name == "error" else limit
                images[name] = picture(axes, np.nan_to_num(fields[frame]).T, extent, scale)
                axes.set(xticks=[], yticks=[], aspect="equal")
                if name == "truth":
                    axes.set_title(f"t = {end * frame / (len(each.truth) - 1):.3g}")
                elif name == "error":
                    share = np.linalg.norm(error[frame]) / np.linalg.norm(each.truth[frame])
                    axes.set_title(f"relative $L^2$ {share:.2g}", fontsize=8)
            grid[3 * k + line, 0].set_ylabel(f"{plain(each.name)}\n{name}")
    for name, label in (("truth", "vorticity"), ("error", f"error, colours × {finer:g}")):
        figure.colorbar(images[name], ax=grid, label=label, extend="both", aspect=40, pad=0.02)
    return figure
