"""Climatology: the Gaussian law with the mean and the covariance of the training part, the same for every input.

    X = mean + sum_{j <= r} g_j sqrt(lambda_j) v_j,      g_j ~ N(0, 1) independent

lambda_j, v_j are the eigenvalues and eigenvectors of the covariance of the n training samples, each an array (T X..);
they are computed from the n x n matrix of inner products. The rank r is n - 1, so that mean and covariance are exactly
the empirical ones, unless the configuration or 256 MiB allow less: then the r largest eigenvalues are kept, and `lost`
is the fraction of the variance in the others. The point prediction is the mean. A model of a law that is no better has
not used its input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spdebench.errors import UserError
from spdebench.models.base import Config, Features, OperatorModel
from spdebench.noise.stream import normal_pairs
from spdebench.noise.unseen import fill_states
from spdebench.tasks import Batch, Setting

MOST_BYTES = 256 << 20
"""The most bytes that the kept eigenvectors may have, in float32."""
COLUMNS = 1 << 14
"""The number of values of a sample that are converted to float64 at a time."""


@dataclass(frozen=True, kw_only=True)
class ClimatologyConfig(Config):
    """The largest rank of the covariance."""

    rank: int = 2000


class Climatology(OperatorModel, name="climatology"):
    """Draw from the Gaussian law with the mean and covariance of the training part, for every input."""

    title = "climatology"
    config_class = ClimatologyConfig
    dims = (1, 2, 3)
    trainable = False
    generative = True
    causal = True

    config: ClimatologyConfig
    field: Tensor
    factors: Tensor
    lost: Tensor

    def __init__(self, setting: Setting, config: ClimatologyConfig) -> None:
        super().__init__(setting, config)
        self.register_buffer("field", torch.zeros(setting.shape))
        self.register_buffer("factors", torch.zeros(0, *setting.shape))  # sqrt(lambda_j) v_j
        self.register_buffer("lost", torch.zeros((), dtype=torch.float64))

    @property
    def rank(self) -> int:
        """The rank of the covariance."""
        return len(self.factors)

    @property
    def draws_members(self) -> bool:
        """Whether the task has ``seen``, even if that is all of the noise: the law does not depend on what is seen."""
        return self.setting.seen is not None

    def prepare(self, batch: Batch) -> Features:
        return {"u0": batch.u0}

    def calibrate(self, features: Features, target: Tensor) -> None:
        n, values = len(target), target.flatten(1)
        if n < 2:
            raise UserError(f"a climatology needs at least 2 training samples, got {n}")
        mean = torch.cat([block.mean(0, dtype=torch.float64) for block in values.split(COLUMNS, 1)])
        blocks = list(zip(values.split(COLUMNS, 1), mean.split(COLUMNS), strict=True))
        gram = torch.zeros(n, n, dtype=torch.float64, device=target.device)
        for block, block_mean in blocks:
            centred = block.double() - block_mean
            gram += centred @ centred.T
        kept = min(n - 1, self.config.rank, max(1, MOST_BYTES // (4 * values.shape[1])))
        eigenvalues, vectors = torch.linalg.eigh(gram / (n - 1))
        combine = vectors[:, -kept:].T.flip(0) / (n - 1) ** 0.5  # of samples into sqrt(lambda_j) v_j
        parts = [(combine @ (block.double() - block_mean)).float() for block, block_mean in blocks]
        self.field.copy_(mean.reshape(self.field.shape))
        self.factors = torch.cat(parts, 1).reshape(kept, *self.field.shape)
        total = float(eigenvalues.clamp_min(0).sum())
        self.lost.fill_(float(eigenvalues[:-kept].clamp_min(0).sum()) / total if total > 0 else 0.0)

    def forward(self, features: Features) -> Tensor:
        return self.field.expand(len(features["u0"]), *self.field.shape).clone()

    def sample(
        self, batch: Batch, members: int, seed: int = 0, first: int = 0, samples: Tensor | None = None
    ) -> Tensor:
        """Draws of the law; of the input only the number of the sample matters, which determines the random numbers."""
        numbers = torch.arange(len(batch)) if samples is None else samples
        node = torch.zeros(1, dtype=torch.int64, device=self.device)
        modes = torch.arange((self.rank + 1) // 2, device=self.device)
        out = self.field.new_empty((len(batch), members, *self.field.shape))
        factors, mean = self.factors.flatten(1), self.field.flatten()
        for i in range(members):
            states = fill_states(seed, numbers, first + i, self.device)
            weights = torch.view_as_real(normal_pairs(states, node, modes)).flatten(1)[:, : self.rank].float()
            out[:, i] = torch.addmm(mean, weights, factors).reshape(len(batch), *self.field.shape)
        return out

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Give the buffer the rank of the loaded one, which depends on the training part, up to the largest rank."""
        value = state_dict.get(prefix + "factors")
        if isinstance(value, Tensor) and value.ndim and len(value) <= self.config.rank:
            self.factors = self.factors.new_empty((len(value), *self.field.shape))
        super()._load_from_state_dict(state_dict, prefix, *args)
