"""Space-time coordinates of grid values, scaled to [0, 1]."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from spdebench.tasks import Setting


def coordinates(setting: Setting, points: Sequence[int] | None = None) -> Tensor:
    """(T, X.., 1+dim): (t - t_0)/(t_T - t_0), then (x - lower)/length along each space axis.

    The points are those of the setting's grid, or ``points`` per axis on the same box. They are at j/N, j = 0..N-1,
    since a periodic or Dirichlet axis does not store its right end; the authors' code puts them at j/(N-1).
    """
    grid = setting.grid if points is None else setting.grid.with_points(points)
    times = torch.tensor(setting.times, dtype=torch.float64)
    axes = [(times - times[0]) / (times[-1] - times[0])]
    axes += [(grid.coordinates(a) - grid.lower[a]) / grid.lengths[a] for a in range(grid.dim)]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).to(torch.get_default_dtype())
