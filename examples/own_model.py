"""How to add a model: a convolutional recurrent network that steps through the frames.

It needs one configuration class and one model class in one file.

On the command line:  spdebench --with examples/own_model.py train walker DATA width=16 epochs=20
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

import spdebench as sb
from spdebench.models import Config, Features, OperatorModel
from spdebench.tasks import Batch, Setting


@dataclass(frozen=True, kw_only=True)
class WalkerConfig(Config):
    """The settings of the model; `spdebench show walker` prints their meanings."""

    width: int = 16  # a name that other models have too is explained already
    reach: int = field(default=3, metadata={"meaning": "number of neighbours on each side in a convolution"})


class Walker(OperatorModel, name="walker"):
    """u_{n+1} = u_n + N(u_n, dw_{n+1}), where N is two convolutions in space, the same for every step; u_0 is given."""

    title = "Walker"
    config_class = WalkerConfig
    causal = True
    any_grid = True

    config: WalkerConfig
    scales: Tensor

    def __init__(self, setting: Setting, config: WalkerConfig) -> None:
        super().__init__(setting, config)
        size, pad = 2 * config.reach + 1, "circular" if setting.grid.periodic else "zeros"
        self.step = nn.Sequential(
            nn.Conv1d(2, config.width, size, padding="same", padding_mode=pad),
            nn.GELU(),
            nn.Conv1d(config.width, 1, size, padding="same", padding_mode=pad),
        )
        self.register_buffer("scales", torch.ones(2))  # of u and dw, fitted to the training part

    def prepare(self, batch: Batch) -> Features:
        return {"u0": batch.u0, "dw": batch.dw}

    def calibrate(self, features: Features, target: Tensor) -> None:
        self.scales.copy_(torch.stack([target.std(), features["dw"][:, 1:].std()]))

    def forward(self, features: Features) -> Tensor:
        u, dw = features["u0"] / self.scales[0], features["dw"] / self.scales[1]
        frames = [u]
        for n in range(1, dw.shape[1]):
            u = u + self.step(torch.stack([u, dw[:, n]], dim=1)).squeeze(1)
            frames.append(u)
        return torch.stack(frames, dim=1) * self.scales[0]


if __name__ == "__main__":
    torch.set_num_threads(1)
    phi = sb.equation("phi41", points=32, truncation=16, frames=20, steps=20, sigma=1.0)
    task = sb.Task(sb.generate(phi, n=200, seed=0, out="data"))
    for name, options in (("mean", {}), ("walker", {"epochs": 30, "batch_size": 20, "learning_rate": 3e-3})):
        run = sb.train(name, task, out="runs", **options)
        print(f"{name:<8} relative L2 {run.scores['rel_l2'].value:.3f}   {run.path}")
