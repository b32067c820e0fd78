"""A metric for the boundary values of a prediction on a Dirichlet grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from spdebench.metrics.base import Measurement, Metric
from spdebench.metrics.fields import Pair
from spdebench.metrics.pointwise import mean_without_nan, ratio


@dataclass(frozen=True)
class BoundaryResidual(Metric, name="boundary", title="values on the boundary"):
    """(1/N) sum_n rms_{t, x on the boundary} V / rms_{t, x} U.

    Source: a Dirichlet field vanishes on the boundary. Only stored boundary points are used: the first one on every
    axis (the last one is 0 and is not stored). Periodic grids have no boundary.
    """

    def refuses(self, pair: Pair) -> str | None:
        return "needs a Dirichlet grid; a periodic one has no boundary" if pair.grid.periodic else None

    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement:
        edge = torch.zeros(pair.grid.points, dtype=torch.bool, device=pair.device)
        for axis in range(pair.grid.dim):
            edge.select(axis, 0).fill_(True)
        trace, size = np.zeros((2, pair.samples_count, pair.steps))
        for where, v, u in pair.samples():
            trace[where] = v[..., edge].square().mean(-1, dtype=torch.float64).cpu().numpy()
            size[where] = u.flatten(2).square().mean(-1, dtype=torch.float64).cpu().numpy()
        trace = np.nan_to_num(trace, nan=np.inf, posinf=np.inf)
        trace[pair.nonfinite] = np.inf  # also if the NaN is not on the boundary
        values = np.sqrt(ratio(trace.mean(1), size.mean(1)))
        zero = int((size.mean(1) == 0).sum())
        curve = mean_without_nan(np.sqrt(ratio(trace, size)))
        return Measurement(float(mean_without_nan(values)), values, "mean", curve, {"zero_norm_samples": zero})
