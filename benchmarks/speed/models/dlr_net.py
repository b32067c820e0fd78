"""DLR-Net: trees integrated mode by mode and a cached first pass, against one dense matrix over all (t, x)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from spdebench.models.base import build
from spdebench.models.dlr_net import DLRNet
from spdebench.models.layers.coordinates import coordinates
from spdebench.tasks import Batch, Setting
from speed.models.base import Case, phi41_setting, training_step
from speed.models.fno import PlainFNO


def dense(integral: Callable[[Tensor], Tensor], shape: tuple[int, ...], rows: int = 256) -> Tensor:
    """The matrix of an integral over all (t, x), transposed: row (m, y) integrates a point source at (t_m, y)."""
    parts = torch.eye(math.prod(shape)).split(rows)
    return torch.cat([integral(part.view(-1, *shape)).flatten(1) for part in parts])


def example(batch: int) -> tuple[Setting, Batch]:
    """The paper's phi41 and ``batch`` random inputs."""
    setting = phi41_setting()
    assert setting.equation is not None
    size = math.sqrt(setting.grid.points[0] * setting.dt)
    dw = torch.randn((batch, *setting.shape), generator=torch.Generator().manual_seed(0)) * size
    dw[:, 0] = 0
    return setting, Batch(setting.equation.initial(setting.grid, 0, range(batch)).float(), dw)


class PlainDLR(nn.Module):
    """Trees that contain I_c are computed by dense products in both passes of every step; the trunk uses FFTs."""

    def __init__(self, matrix: Tensor, places: Tensor) -> None:
        super().__init__()
        self.matrix, self.places = matrix, places
        self.latent = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 1))
        self.network = PlainFNO(16, width=8, layers=4, modes=(16, 16))

    def forward(self, trees: Tensor, start: Tensor) -> Tensor:
        """trees (B, T, X, 4) without I_c: I[xi] and its integrals; start (B, T, X): I_c."""
        first = torch.cat((trees, self._with(start, trees)), -1)
        v = self.latent(first).squeeze(-1)
        channels = torch.cat((first, self._with(v, trees)), -1).transpose(1, 2)
        return self.network(channels, self.places.expand(len(channels), -1, -1, -1)).transpose(1, 2)

    def _with(self, c: Tensor, trees: Tensor) -> Tensor:
        """c, I[c], I[X c], I[c^2], I[X^2 c] and I[X c^2] for X = I[xi]: (B, T, X, 6)."""
        x = trees[..., 0]
        products = (c, x * c, c * c, x * x * c, x * c * c)
        integrals = [(p.flatten(1) @ self.matrix).view_as(c) for p in products]
        return torch.stack((c, *integrals), -1)


def case(batch: int = 20) -> Case:
    setting, inputs = example(batch)
    model = build("dlr-net", setting)
    assert isinstance(model, DLRNet)
    features = model.prepare(inputs)
    names = model.trees.names
    fixed = [i for i in range(len(names)) if i not in model.trees.with_datum]
    trees, start = features["trees"][..., fixed], features["trees"][..., names.index("I_c")]
    plain = PlainDLR(dense(model.trees.kernel.drift, setting.shape), coordinates(setting).transpose(0, 1))

    ours, reference = training_step(model, features), training_step(plain, trees, start)
    return Case("dlr-net", 1.5, ours, reference, "10 trees, 6 with u0; width 8, 4 layers, modes (16, 16)")
