"""Neural controlled differential equation (P. Kidger, J. Morrill, J. Foster, T. Lyons, NeurIPS 2020):

    z_0 = A u_0,   dz = f(z) dX,   X = (t, W(x_1), .., W(x_N)),   u(t_n) = R z_n

with z in R^h and f(z) = tanh(W_2 relu(W_1 z)) in R^{h x (N+1)}. X is linear between frames.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from spdebench.models.base import Config, Features
from spdebench.models.paths import DrivenModel, MatrixField, Solver, integrate, product
from spdebench.tasks import Setting


@dataclass(frozen=True, kw_only=True)
class NCDEConfig(Config):
    hidden: int = 32  # h
    width: int = 128  # of the vector field
    solver: Solver = "euler"


class PathModel(DrivenModel):
    """Base of `ncde` and `nrde`: the control X, the maps A and R, and their normalisation.

    * The control consists of the increments of (sqrt(n) t/T, W/s) over n steps. s is the root mean square of W_T over
      the training part, one number for all points, so that every channel changes by about 1/sqrt(n) per step. The
      authors' code standardises each frame, which divides W_t by sqrt(t) and destroys the time channel.
    * u0 is standardised by two numbers, so that it remains an input also if all samples have the same u0. u is
      standardised by its training mean field and one number, so that R z = 0 predicts the mean.
    * Frame 0 of the output is u0, which is given.
    """

    intervals: Tensor

    def __init__(self, setting: Setting, config: Config, hidden: int) -> None:
        super().__init__(setting, config, setting.shape)
        points = setting.grid.points[0]
        times = torch.tensor(setting.times, dtype=torch.float64)
        steps = times.diff() / (times[-1] - times[0]) * (setting.frames - 1) ** 0.5
        self.register_buffer("intervals", steps.float(), persistent=False)
        self.lift = nn.Linear(points, hidden)
        self.readout = nn.Linear(hidden, points)

    def control(self, dw: Tensor) -> Tensor:
        """Increments of (sqrt(n) t/T, W/s) over the intervals, ``(B, T - 1, N + 1)``."""
        clock = self.intervals[None, :, None].expand(len(dw), -1, 1)
        return torch.cat([clock, self.noise(dw[:, 1:])], dim=2)

    def trajectory(self, start: Tensor, increments: Tensor) -> Tensor:
        """z at all frames ``(B, T, h)`` from z_0 and the increments of the control."""
        raise NotImplementedError

    def forward(self, features: Features) -> Tensor:
        u0 = features["u0"]
        states = self.trajectory(self.lift(self.initial(u0)), self.control(features["dw"]))
        u = self.solution.inverse(self.readout(states))
        return torch.cat([u0[:, None], u[:, 1:]], dim=1)


class NCDE(PathModel, name="ncde"):
    """Neural controlled differential equation dz = f(z) d(t, W) for the values at all grid points.

    Number of parameters: h (2N + 1) + N + width (h + 1) + (width + 1) h (N + 1), which is 545,088 for h = 32, N = 128.
    A step uses the increment of its own interval, and gradients are those of the discrete solution
    (`spdebench.models.paths.integrate` describes the differences to the authors' code). The architecture is the
    paper's, so there is only one form.
    """

    title = "NCDE"
    config_class = NCDEConfig

    def __init__(self, setting: Setting, config: NCDEConfig) -> None:
        super().__init__(setting, config, config.hidden)
        self.solver = config.solver
        self.field = MatrixField(config.hidden, setting.grid.points[0] + 1, config.width)

    def trajectory(self, start: Tensor, increments: Tensor) -> Tensor:
        start, field = self.field.bind(start)
        return integrate(product(field), start, increments, self.solver)
