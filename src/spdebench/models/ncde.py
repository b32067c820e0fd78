"""Neural controlled differential equation (P. Kidger, J. Morrill, J. Foster, T. Lyons, NeurIPS 2020):

    z_0 = A u_0,   dz = f(z) dX,   X = (t, W(x_1), .., W(x_N)),   u(t_n) = R z_n

with f(z) = tanh(W_2 relu(W_1 z)) in R^{h x (N+1)}. X is linear between frames, z in R^h.
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
    """What `ncde` and `nrde` share: the control, the maps into and out of the hidden state, their normalisers.

    * Control: increments of (sqrt(n) t/T, W/s), n steps, s the training rms of W_T: all channels then move by about
      1/sqrt(n) per step. One number for all points and frames: the reference standardises each frame, which divides W_t
      by sqrt(t) and ruins the time channel.
    * u0 is standardised by two numbers, so that it is seen also where all samples share it; u by its training mean
      field and one number, so that R z = 0 is the mean predictor.
    * Frame 0 is u0, which is given; R z_0 is not asked for.
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
        """z at all frames ``(B, T, h)`` from z_0 and the control's increments."""
        raise NotImplementedError

    def forward(self, features: Features) -> Tensor:
        u0 = features["u0"]
        states = self.trajectory(self.lift(self.initial(u0)), self.control(features["dw"]))
        u = self.solution.inverse(self.readout(states))
        return torch.cat([u0[:, None], u[:, 1:]], dim=1)


class NCDE(PathModel, name="ncde"):
    """dz = f(z) d(t, W): parameters h (2N + 1) + N + width (h + 1) + (width + 1) h (N + 1); 545,088 at h = 32, N = 128.

    Steps use the increment of their own interval and plain gradients (`spdebench.models.paths.integrate` tells what
    the reference does); normalisation as in `PathModel`. The architecture is the paper's, so there is one form.
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
