"""The sample whose fields a figure shows: the first of a run's test part, solved again from its seed.

It is shown on the grid of the run's data and on the grid on which these data were solved. Records hold what the run
predicts for it (`figure_data.fields`); the figure compares this with the solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from spdebench.data.identity import dataset_of
from spdebench.equations import Equation
from spdebench.errors import without_aliasing_warning
from spdebench.grids import Grid
from spdebench.solvers import simulate
from spdebench.training import RunSpec

FRAMES = 5
"""How many frames are shown: evenly spread, the last one among them."""


@dataclass(frozen=True)
class ShownSample:
    """Sample ``row`` of a dataset: u0 (1 X..), dw and u (1 T X..), of which ``frames`` at ``times`` are shown."""

    row: int
    frames: tuple[int, ...]
    times: tuple[float, ...]
    equation: Equation
    u0: Tensor
    dw: Tensor
    u: Tensor


def shown_grids(run: RunSpec) -> dict[str, tuple[Equation, int]]:
    """Name of a grid ("16 x 16") -> the equation that is solved for it, and which points of the solution it has (1:
    all, 2: every second one ...). The first is the grid of the run's task."""
    own = dataset_of(run.datasets[0]).equation
    solved = own.replace(points=own.solve_points, solve_points=own.solve_points)
    found = {_name(run.setting.grid): (own, run.task_spec.stride)}
    found.setdefault(_name(solved.grid), (solved, 1))
    return found


def _name(grid: Grid) -> str:
    return " x ".join(map(str, grid.points))


def shown_sample(run: RunSpec, grid: str) -> ShownSample:
    """The first sample of the run's test part on one of its `shown_grids`."""
    data, task = dataset_of(run.datasets[0]), run.task_spec
    equation, stride = shown_grids(run)[grid]
    row = int(task.rows(data.n)["test"][0])
    with without_aliasing_warning():
        path = simulate(equation, data.seed, [row], every=task.every)
    points: tuple[Any, ...] = (..., *[slice(None, None, stride)] * equation.dim)
    last = path.u.shape[1] - 1
    frames = tuple(np.linspace(0, last, FRAMES + 1).round().astype(int)[1:].tolist())
    times = tuple(equation.horizon * frame / last for frame in frames)
    return ShownSample(row, frames, times, equation, path.u0[points], path.dw[points], path.u[points])
