"""Normalisers that are fitted on the training part and then fixed: buffers, so that they lie in the state dict.

    Scale      x -> x / s,        s = rms of x                    (paths and increments: 0 keeps its meaning)
    Standard   x -> (x - m) / s,  m a number or a field, s = rms of x - m

The authors' code standardises each frame of each channel of the path separately. That divides W_t by sqrt(t), makes the
time channel rounding noise divided by 1e-5, and what the network integrates is no longer the increments of W. Here one
number scales the noise. A mean *field* is right for the output (0 is then the mean predictor); its spread stays one
number, so that a state that moves little in early frames need not be blown up to unit variance.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def _rms(values: Tensor) -> Tensor:
    """The root mean square of the values; 1 if they are 0 up to rounding."""
    rms = values.double().square().mean().sqrt()
    return torch.where(rms > 1e-12, rms, torch.ones_like(rms))


def fit_units(sizes: Tensor, *values: Tensor | None) -> None:
    """Set sizes[i] to the root mean square of values[i]; it stays as it is if values[i] is None or 0."""
    for i, each in enumerate(values):
        if each is not None and (size := each.square().mean().sqrt()) > 0:
            sizes[i] = size


class Scale(nn.Module):
    """x / s; s = 1 before `fit`."""

    size: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("size", torch.ones(()))

    def fit(self, values: Tensor) -> None:
        self.size.copy_(_rms(values))

    def forward(self, values: Tensor) -> Tensor:
        return values / self.size


class Standard(nn.Module):
    """(x - m) / s with m of shape ``shape``, () for one number; m = 0, s = 1 before `fit`."""

    mean: Tensor
    size: Tensor

    def __init__(self, shape: Sequence[int] = ()) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(tuple(shape)))
        self.register_buffer("size", torch.ones(()))

    def fit(self, values: Tensor) -> None:
        """Fit m and s to samples ``(N, *shape)``, or to all numbers in ``values`` if m is one number."""
        self.mean.copy_(values.mean(0) if self.mean.ndim else values.double().mean())
        self.size.copy_(_rms(values - self.mean.to(values)))

    def forward(self, values: Tensor) -> Tensor:
        return (values - self.mean) / self.size

    def inverse(self, values: Tensor) -> Tensor:
        return self.mean + self.size * values
