"""Neural rough differential equation (J. Morrill, C. Salvi, P. Kidger, J. Foster, ICML 2021):

    z_0 = A u_0,   z_n = z_k + f(z_k) LogSig_{t_k, t_n}(X),   X = (t, W(x_1), .., W(x_N)),   u(t_n) = R z_n

where k is the first frame of the window that contains n, and LogSig has depth 2: N + 1 increments and N(N + 1)/2 Levy
areas.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from spdebench.errors import UserError
from spdebench.models.base import Config
from spdebench.models.ncde import PathModel
from spdebench.models.paths import MatrixField, log_ode
from spdebench.tasks import Setting


@dataclass(frozen=True, kw_only=True)
class NRDEConfig(Config):
    hidden: int = 8  # h
    width: int = 128  # of the vector field
    window: int = 3  # steps of the path that one log-signature covers


class NRDE(PathModel, name="nrde"):
    """Neural rough differential equation: a log-ODE step over each window of the noise path.

    It has 8,656,656 parameters for h = 8, N = 128, where the log-signature has 8385 channels.

    The authors' code uses the 18 partial sums of log-signatures (windows of 3 out of 50 steps) as the values of its
    control at t = 0..17 but solves on t = 0..50. There frame k depends on noise up to about frame 3(k-1), and the last
    33 frames extrapolate the last slope. Here the 17 windows are at their own times, and a frame inside a window uses
    the log-signature up to this frame (`spdebench.models.paths.logode`). Log-signatures are those of the scaled control
    and are not rescaled per frame.

    Levy areas are divided by (d-1)/2, their number for each of the d increments. Adam changes all weights by equal
    steps, so otherwise the 8256 areas would change z more than the 129 increments do; at 128 points the training error
    then first increases, and after five epochs it is still larger than that of the mean. (The authors' code scales
    every area to unit variance, which gives them ten times more weight still.)
    """

    title = "NRDE"
    config_class = NRDEConfig

    def __init__(self, setting: Setting, config: NRDEConfig) -> None:
        if not 1 <= config.window < setting.frames:
            raise UserError(f"model nrde: window must lie in 1..{setting.frames - 1} here, got {config.window}")
        super().__init__(setting, config, config.hidden)
        channels = setting.grid.points[0] + 1
        self.window, self.area_weight = config.window, 2 / (channels - 1)
        self.field = MatrixField(config.hidden, channels * (channels + 1) // 2, config.width)

    def trajectory(self, start: Tensor, increments: Tensor) -> Tensor:
        start, field = self.field.bind(start)
        return log_ode(field, start, increments, self.window, self.area_weight)
