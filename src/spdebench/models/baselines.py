"""Baselines without a network: `calibrate` is all of their training. What does not beat them has not learned.

    mean     u(t, x) = mean of u(t, x) over the training part
    linear   u = sum_i c_i tau_i,   tau_i the trees of height 1: the linear equation's solution, a coefficient each
    trees    u = sum_i c_i tau_i,   tau_i the trees of height 2 (`regularity`)

c minimises the squared error over t_1..t_T of the training part. With the generator's own kernel ``trees`` is the
solution but for the terms that the expansion leaves out, so its error says what the kernel gives away for nothing.
The paper has no such row.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from spdebench.errors import UserError
from spdebench.models.base import Config, Features, OperatorModel
from spdebench.models.regularity import TreeConfig, TreeModel
from spdebench.tasks import Batch, Setting

CHUNK = 32
"""Samples that enter the sums of a regression together, in float64."""


class Mean(OperatorModel, name="mean"):
    """The mean of the training part, whatever the input."""

    title = "Mean"
    dims = (1, 2, 3)
    trainable = False
    causal = True

    field: Tensor

    def __init__(self, setting: Setting, config: Config) -> None:
        super().__init__(setting, config)
        self.register_buffer("field", torch.zeros(setting.shape))

    def prepare(self, batch: Batch) -> Features:
        return {"u0": batch.u0}

    def calibrate(self, features: Features, target: Tensor) -> None:
        self.field.copy_(target.mean(0, dtype=torch.float64))

    def forward(self, features: Features) -> Tensor:
        return self.field.expand(len(features["u0"]), *self.field.shape).clone()


@dataclass(frozen=True, kw_only=True)
class RegressionConfig(TreeConfig):
    """``ridge`` is added to the diagonal of the normal equations of features of size 1."""

    ridge: float = 1e-12


class Regression(TreeModel):
    """u = sum_i c_i tau_i by least squares."""

    config_class = RegressionConfig
    dims = (1, 2, 3)
    trainable = False
    causal = True

    config: RegressionConfig
    weights: Tensor

    def __init__(self, setting: Setting, config: RegressionConfig) -> None:
        super().__init__(setting, config)
        self.register_buffer("weights", torch.zeros(len(self.trees.trees)))

    def calibrate(self, features: Features, target: Tensor) -> None:
        self.weights.copy_(least_squares(features["trees"][:, 1:], target[:, 1:], self.config.ridge))

    def forward(self, features: Features) -> Tensor:
        return features["trees"] @ self.weights

    def coefficients(self) -> dict[str, float]:
        """c by tree: 'I[xi]' has sigma and 'I[I[xi]^3]' minus its cube, as far as the expansion goes."""
        return dict(zip(self.trees.names, self.weights.tolist(), strict=True))


@dataclass(frozen=True, kw_only=True)
class LinearConfig(RegressionConfig):
    """Height 1: the trees without products of the solution."""

    height: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.height != 1:
            raise UserError(f"model linear: height is 1, got {self.height}; use the model trees for more")


class Linear(Regression, name="linear"):
    """The solution of the linear equation: propagated datum, stochastic convolution and forces, a coefficient each."""

    title = "Linear"
    config_class = LinearConfig


class Trees(Regression, name="trees"):
    """Linear regression on the trees of height 2."""

    title = "Trees"


def least_squares(columns: Tensor, target: Tensor, ridge: float) -> Tensor:
    """c (F) that minimises |columns c - target|^2 + ridge |S c|^2 n, S the columns' sizes; columns (N, .., F).

    Normal equations of scaled columns, summed in float64 a few samples at a time; a column that is 0 gets 0.
    """
    count = columns.shape[-1]
    gram = torch.zeros(count, count + 1, dtype=torch.float64, device=columns.device)
    for some, wanted in zip(columns.split(CHUNK), target.split(CHUNK), strict=True):
        a = some.reshape(-1, count).double()
        gram += a.T @ torch.cat((a, wanted.reshape(-1, 1).double()), 1)
    size = gram.diagonal().sqrt()
    size = torch.where(size > 0, size, 1.0)
    scaled = gram[:, :count] / size / size[:, None]
    scaled.diagonal().add_(ridge)
    out: Tensor = torch.linalg.solve(scaled, gram[:, count] / size) / size
    return out
