"""A small model and a small dataset for the tests of training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import spdebench as sb
from spdebench.models import MODELS, Config, Features, OperatorModel
from spdebench.tasks import Batch, Setting, Task


@dataclass(frozen=True, kw_only=True)
class TinyConfig(Config):
    width: int = 8
    dropout: float = 0.0
    modes: tuple[int, ...] = (4, 4)


class Tiny(OperatorModel):
    """u = u0 + mean + two layers with batch normalisation and dropout on the path W."""

    name = "tiny"
    title = "Tiny"
    config_class = TinyConfig
    dims = (1, 2)
    costly_features = True
    mean: Tensor

    def __init__(self, setting: Setting, config: TinyConfig) -> None:
        super().__init__(setting, config)
        size = setting.frames * torch.Size(setting.grid.points).numel()
        self.register_buffer("mean", torch.zeros(setting.shape))
        self.first = nn.Linear(size, config.width)
        self.norm = nn.BatchNorm1d(config.width)
        self.drop = nn.Dropout(config.dropout)
        self.second = nn.Linear(config.width, size)

    def prepare(self, batch: Batch) -> Features:
        return {"w": batch.dw.cumsum(1), "u0": batch.u0}

    def calibrate(self, features: Features, target: Tensor) -> None:
        self.mean.copy_((target - features["u0"].unsqueeze(1)).mean(0))

    def forward(self, features: Features) -> Tensor:
        w = features["w"]
        hidden = self.drop(torch.relu(self.norm(self.first(w.flatten(1)))))
        return features["u0"].unsqueeze(1) + self.mean + self.second(hidden).view(w.shape)


class Average(Tiny):
    """No training: u0 and the mean."""

    name = "average"
    trainable = False

    def forward(self, features: Features) -> Tensor:
        return (features["u0"].unsqueeze(1) + self.mean).expand_as(features["w"])


@pytest.fixture(autouse=True)
def _models(monkeypatch):
    torch.set_num_threads(1)
    for model in (Tiny, Average):
        monkeypatch.setitem(MODELS._items, model.name, model)


@pytest.fixture(scope="session")
def path(tmp_path_factory) -> Path:
    phi = sb.equation("phi41", points=16, frames=10, steps=10, truncation=8)
    return sb.generate(phi, n=40, seed=0, out=tmp_path_factory.mktemp("data"))


@pytest.fixture
def task(path) -> Task:
    return Task(path)
