"""Baselines without a neural network; `calibrate` fits them. A network should be more accurate than they are.

    mean     u(t, x) = mean of u(t, x) over the training part
    linear   u = sum_i c_i tau_i,   tau_i the trees of height 1: the parts of the solution of the linear equation
    trees    u = sum_i c_i tau_i,   tau_i the trees of height 2 (`regularity`)

c minimises the squared error over t_1..t_T of the training part. With the kernel of the scheme that generated the data
(``kernel="generator"``), ``trees`` is that solution up to the neglected terms of its expansion; its error shows how
much a model gains from knowing this kernel. The paper has no such baselines.
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
"""Samples per block of the sums of a regression, which are computed in float64."""


class Mean(OperatorModel, name="mean"):
    """Predict the mean of the training part for every input."""

    title = "mean"
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
    """``ridge`` is added to the diagonal of the normal equations, whose features are scaled to norm 1."""

    ridge: float = 1e-12


class Regression(TreeModel):
    """u = sum_i c_i tau_i with c from least squares."""

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
        """c_i by the name of the tree; in the expansion of phi41 'I[xi]' has sigma and 'I[I[xi]^3]' has -sigma^3."""
        return dict(zip(self.trees.names, self.weights.tolist(), strict=True))


@dataclass(frozen=True, kw_only=True)
class LinearConfig(RegressionConfig):
    """Height 1: no products of trees."""

    height: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.height != 1:
            raise UserError(f"model linear: height must be 1, got {self.height}; use the model trees for more")


class Linear(Regression, name="linear"):
    """Linear regression on the solution of the linear equation: initial datum, stochastic convolution and forces."""

    title = "linear"
    needs_rule = False
    config_class = LinearConfig


class Trees(Regression, name="trees"):
    """Linear regression on the trees of height 2, that is, on products of the linear solution and their integrals."""

    title = "trees"


def least_squares(columns: Tensor, target: Tensor, ridge: float) -> Tensor:
    """c (F) that minimises |columns c - target|^2 + ridge |S c|^2, S the norms of the columns; columns (N, .., F).

    Solves the normal equations of scaled columns, summed in float64 block by block; c is 0 for a column that is 0.
    """
    count = columns.shape[-1]
    gram = torch.zeros(count, count + 1, dtype=torch.float64, device=columns.device)
    for block, wanted in zip(columns.split(CHUNK), target.split(CHUNK), strict=True):
        a = block.reshape(-1, count).double()
        gram += a.T @ torch.cat((a, wanted.reshape(-1, 1).double()), 1)
    size = gram.diagonal().sqrt()
    size = torch.where(size > 0, size, 1.0)
    scaled = gram[:, :count] / size / size[:, None]
    scaled.diagonal().add_(ridge)
    out: Tensor = torch.linalg.solve(scaled, gram[:, count] / size) / size
    return out
