"""The matrix-valued vector field of the neural CDE and RDE:  f(z) = tanh(W_2 relu(W_1 z + b_1) + b_2) in R^{h x c}."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from spdebench.models.paths.gather import Map, gathered
from spdebench.models.paths.integrate import Product


class MatrixField(nn.Module):
    """z ``(B, hidden)`` -> f(z) ``(B, hidden, channels)``.

    W_2 starts ten times smaller than a linear layer does by default, so that f is nearly constant in z at first and the
    solution nearly linear in the path. With the default the random dependence on z drowns the path's signal: on phi41
    with sigma = 1 and 160 samples the network then learns nothing beyond the mean predictor.
    """

    def __init__(self, hidden: int, channels: int, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(hidden, width)
        self.outer = nn.Linear(width, hidden * channels)
        with torch.no_grad():
            self.outer.weight.mul_(0.1)
        self.shape = (hidden, channels)

    def bind(self, start: Tensor) -> tuple[Tensor, Map]:
        """(z_0, f) for one solve from ``start``; weight gradients of all evaluations are computed together."""
        inner, outer = ((layer.weight, layer.bias) for layer in (self.inner, self.outer))
        start, maps = gathered(start, inner, outer)
        return start, lambda z: self._value(z, *maps)

    def forward(self, z: Tensor) -> Tensor:
        return self._value(z, self.inner, self.outer)

    def _value(self, z: Tensor, inner: Map, outer: Map) -> Tensor:
        """f(z) with the two linear maps ``inner`` and ``outer``."""
        out: Tensor = outer(inner(z).relu()).tanh().unflatten(-1, self.shape)
        return out


def product(field: Map) -> Product:
    """The map (z, dX) -> f(z) dX ``(B, hidden)`` for dX ``(B, channels)``."""
    return lambda z, increment: torch.bmm(field(z), increment[:, :, None]).squeeze(2)
