"""WNO, the wavelet neural operator (Tripura & Chakraborty 2023), in one space dimension and time.

    v_0(t,x) = P [dw(t_0..t_T, x), u0(x), t, x],   v_{l+1} = act( inverse(M_l coarse(v_l), fine(v_l)) + K_l v_l + b_l ),
    u = Q v_L,   coarse: the four coarsest bands of a wavelet transform over (t, x), M_l one matrix per coefficient

act is GELU, except in the last layer, which has none. Time is extended by ``padding`` frames of zeros before the layers
and cut afterwards. Q is a perceptron width -> 128 -> 1 with GELU. u0 is an input only in the task (u0, xi) -> u, which
the paper does not have for WNO.

The noise part of P does not depend on t, so it is computed once per point and broadcast; the authors' code repeats the
whole path at all T frames, which needs T times the memory. A layer computes only the coefficients that it changes
(`layers/wavelet.py`). Wavelets do not respect boundary conditions: both axes are continued by reflection, also periodic
x, as in the paper. dw is divided by its root mean square over the training part, and u0 and u are standardised by one
mean and one standard deviation each; ``form="published"`` leaves all three in the units of the data, as the authors'
code does. The size of dw matters: with inputs of size 1 the matrices overfit the training noise sooner than with the
units of the data (0.36 at J = 128). The matrices belong to the wavelet coefficients of one grid, so a trained model
works only on that grid.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spdebench.errors import UserError
from spdebench.models.base import Config, Features, OperatorModel
from spdebench.models.layers.coordinates import coordinates
from spdebench.models.layers.mlp import MLP
from spdebench.models.layers.normalise import Scale, Standard
from spdebench.models.layers.wavelet import WaveletLayer, largest_level
from spdebench.tasks import Batch, Setting


@dataclass(frozen=True, kw_only=True)
class WNOConfig(Config):
    """``level``: levels of the transform with ``wavelet`` (haar, db1..db8); ``form="published"``: no scaling."""

    width: int = 32
    layers: int = 4
    level: int = 4
    wavelet: str = "db6"
    padding: int = 6
    form: Literal["default", "published"] = "default"


class WNO(OperatorModel, name="wno"):
    """Wavelet neural operator on space and time."""

    title = "WNO"
    config_class = WNOConfig
    dims = (1,)
    added_inputs = ("u0+xi",)

    config: WNOConfig
    places: Tensor

    def __init__(self, setting: Setting, config: WNOConfig) -> None:
        super().__init__(setting, config)
        frames, (points,) = setting.frames, setting.grid.points
        self.padding, self.has_u0 = config.padding, setting.inputs == "u0+xi"
        self.noise, self.start, self.solution = Scale(), Standard(), Standard()
        self.register_buffer("places", coordinates(setting), persistent=False)
        self.lift = nn.Linear(frames + self.has_u0 + 2, config.width)
        shape = (frames + config.padding, points)
        self.layers = nn.ModuleList(
            WaveletLayer(config.width, shape, config.wavelet, config.level) for _ in range(config.layers)
        )
        self.decoder = MLP(config.width, 128, 1)

    @classmethod
    def configure(cls, setting: Setting, values: Mapping[str, Any]) -> Config:
        """As for every model; a recommended ``level`` is reduced to what fits the grid, a given one must fit."""
        config = super().configure(setting, values)
        assert isinstance(config, WNOConfig)
        sizes = (setting.frames + config.padding, *setting.grid.points)
        top = min(largest_level(n, config.wavelet) for n in sizes)
        if top == 0 or ("level" in values and not 1 <= config.level <= top):
            hint = f"use level=1 to {top}" if top else "use a shorter wavelet (haar is the shortest) or a finer grid"
            raise UserError(
                f"model wno: level {config.level} of {config.wavelet} does not fit {sizes[0]} frames (padded) by "
                f"{sizes[1]} points; {hint}"
            )
        return dataclasses.replace(config, level=min(config.level, top))

    def prepare(self, batch: Batch) -> Features:
        features = {"dw": batch.dw}
        if self.has_u0:
            features["u0"] = batch.u0
        return features

    def calibrate(self, features: Features, target: Tensor) -> None:
        if self.config.form == "published":
            return
        self.noise.fit(features["dw"][:, 1:])
        self.solution.fit(target)
        if self.has_u0:
            self.start.fit(features["u0"])

    def forward(self, features: Features) -> Tensor:
        v = self._lift(features)
        frames, (*inner, last) = v.shape[1], self.layers
        for layer in inner:
            v = layer(v, activation="gelu")  # the first layer adds the padding in time
        u = self.decoder(last(v, frames).movedim(0, -2))
        return self.solution.inverse(u.squeeze(-1).movedim(-1, 0))

    def _lift(self, features: Features) -> Tensor:
        """P at all (t, x): the part of the noise, which does not depend on t, plus the part of the coordinates.

        The result is (B, T, X, width), stored in memory as (T, X, B, width), which the layers need.
        """
        inputs = [self.noise(features["dw"]).permute(2, 0, 1)]
        if self.has_u0:
            inputs.append(self.start(features["u0"]).T.unsqueeze(-1))
        at_x, at_tx = self.lift.weight.split([self.lift.in_features - 2, 2], dim=1)
        path = F.linear(torch.cat(inputs, -1), at_x, self.lift.bias)
        return (path + F.linear(self.places, at_tx).unsqueeze(-2)).movedim(-2, 0)
