"""Neural rough differential equation (J. Morrill, C. Salvi, P. Kidger, J. Foster, T. Lyons, ICML 2021):

    z_0 = A u_0,   z_n = z_k + f(z_k) LogSig_{t_k, t_n}(X),   X = (t, W(x_1), .., W(x_N)),   u(t_n) = R z_n

k the first frame of the window that holds n, LogSig of depth 2: N + 1 increments and N(N + 1)/2 Levy areas.
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
    """A log-ODE over windows of the path; 8,656,656 parameters at h = 8, N = 128 (8385 channels of the log-signature).

    The reference takes the 18 sums of log-signatures (windows of 3 of 50 steps) as the values of its control at
    t = 0..17 and solves on t = 0..50: frame k sees noise up to about 3(k-1), then the last slope for 33 frames. Here
    17 windows stand where they lie in time, and frames inside a window use the log-signature up to themselves
    (`spdebench.models.paths.logode`). Log-signatures are of the scaled control, and not rescaled frame by frame.

    Areas enter divided by (d-1)/2, their number for each of the d increments. Adam moves all weights by equal steps, so
    the 8256 areas would otherwise move z more than the 129 increments do: at 128 points the training error then rises
    first and five epochs do not reach the mean predictor. (The reference gives every area unit variance, which
    weighs them ten times more still.)
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
