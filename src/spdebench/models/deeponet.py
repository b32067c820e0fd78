"""DeepONet (Lu et al. 2021) applied to the noise.

    u(t,x) = mean(t,x) + std(t,x) sum_i b_i(z) g_i(t,x),   z = (dw(t_1..t_T, .), u0) pointwise standardised
    b = tanh MLP(z), g = tanh MLP(t,x): ``branch_depth`` and ``trunk_depth`` linear layers of one width, ReLU between

Means and standard deviations are those of each point over the training part. No bias is added to the sum. The output at
t_0 is u0 itself. u0 is an input of the branch only in the task (u0, xi) -> u, which the paper does not have for
DeepONet.

Coordinates are scaled to mean 0 and variance 1 over the box. The authors' code leaves them in [0,1], where a ReLU
network has few kinks and learns slowly: in 400 steps it fitted four samples of rough noise to 12 %, and now to 4 %
(measured once; that variant is not part of the package). If a point never varies (a fixed boundary), its standard
deviation is 0 and the output is its mean; the authors' code adds 1e-5 to every standard deviation. That code also cuts
noise and solution to 128 points by two different slices, which agree only because 129 points are stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn

from spdebench.models.base import Config, Features, OperatorModel
from spdebench.models.layers.coordinates import coordinates
from spdebench.tasks import Batch, Setting


@dataclass(frozen=True, kw_only=True)
class DeepONetConfig(Config):
    """``width`` of all layers; a depth is the number of linear layers."""

    width: int = 512
    branch_depth: int = 3
    trunk_depth: int = 3


class DeepONet(OperatorModel, name="deeponet"):
    """Deep operator network: a branch network for the noise and a trunk network for (t, x)."""

    title = "DeepONet"
    config_class = DeepONetConfig
    dims = (1,)
    added_inputs = ("u0+xi",)

    config: DeepONetConfig
    input_mean: Tensor
    input_scale: Tensor
    mean: Tensor
    std: Tensor
    places: Tensor

    def __init__(self, setting: Setting, config: DeepONetConfig) -> None:
        super().__init__(setting, config)
        self.has_u0 = setting.inputs == "u0+xi"
        points = prod(setting.grid.points)
        learned = (setting.frames - 1) * points
        inputs = learned + points * self.has_u0
        self.register_buffer("input_mean", torch.zeros(inputs))
        self.register_buffer("input_scale", torch.ones(inputs))
        self.register_buffer("mean", torch.zeros(learned))
        self.register_buffer("std", torch.ones(learned))
        places = 12**0.5 * (coordinates(setting)[1:].flatten(0, -2) - 0.5)  # mean 0 and variance 1 over the box
        self.register_buffer("places", places, persistent=False)
        self.branch = _mlp(inputs, config.width, config.branch_depth)
        self.trunk = _mlp(1 + setting.dim, config.width, config.trunk_depth)

    def prepare(self, batch: Batch) -> Features:
        flat = batch.dw[:, 1:].flatten(1)
        return {"inputs": torch.cat([flat, batch.u0.flatten(1)], 1) if self.has_u0 else flat, "u0": batch.u0}

    def calibrate(self, features: Features, target: Tensor) -> None:
        z, u = features["inputs"], target[:, 1:].flatten(1)
        std = _std(z)
        self.input_mean.copy_(z.mean(0))
        self.input_scale.copy_(torch.where(std > 0, 1 / std, torch.zeros_like(std)))
        self.mean.copy_(u.mean(0))
        self.std.copy_(_std(u))

    def forward(self, features: Features) -> Tensor:
        u0 = features["u0"]
        b = self.branch((features["inputs"] - self.input_mean) * self.input_scale)
        later = self.mean + self.std * (b @ self.trunk(self.places).T)
        return torch.cat([u0.unsqueeze(1), later.view(len(u0), -1, *u0.shape[1:])], 1)


def _mlp(inputs: int, width: int, depth: int) -> nn.Sequential:
    """``depth`` linear layers with ReLU between them and tanh at the end."""
    layers: list[nn.Module] = []
    for i in range(depth):
        layers += [nn.Linear(width if i else inputs, width), nn.ReLU()]
    return nn.Sequential(*layers[:-1], nn.Tanh())


def _std(values: Tensor) -> Tensor:
    """Standard deviation of each column; 0 where it is below 1e-6 of the largest one, that is, rounding."""
    std = values.std(0, correction=0)
    return torch.where(std > 1e-6 * std.max(), std, torch.zeros_like(std))
