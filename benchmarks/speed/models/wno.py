"""WNO at the paper's size: coarse bands by four small matrices, against all bands of all levels by convolutions."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spdebench.models.base import build
from spdebench.models.layers.wavelet import WaveletLayer
from spdebench.models.layers.wavelet_filters import scaling_filter
from spdebench.models.wno import WNO
from speed.models.base import Case, phi41_setting, training_step

Details = tuple[Tensor, tuple[int, int]]


class PlainWNO(nn.Module):
    """The same function with the same parameters, as the reference writes it: the noise path repeated at every frame,
    layers on (B, C, X, T) with the whole transform and its inverse, one axis at a time by grouped convolutions."""

    def __init__(self, model: WNO) -> None:
        super().__init__()
        self.model = model
        self.level = model.config.level
        h = torch.tensor(scaling_filter(model.config.wavelet))
        d = h * (-1.0) ** (torch.arange(len(h)) + 1)
        self.taps = len(h)
        # conv2d correlates where the transform convolves, so the analysis filters are reversed
        self.filters = torch.stack([h, d.flip(0)]).unsqueeze(1)

    def forward(self, dw: Tensor) -> Tensor:
        model = self.model
        b, frames, points = dw.shape
        path = model.noise(dw).transpose(1, 2).unsqueeze(2).expand(b, points, frames, frames)
        place = model.places.transpose(0, 1).expand(b, points, frames, 2)
        v = F.pad(model.lift(torch.cat([path, place], -1)).permute(0, 3, 1, 2), (0, model.padding))
        for i, layer in enumerate(model.layers):
            assert isinstance(layer, WaveletLayer)
            own = F.conv2d(v, layer.pointwise.weight[..., None, None], layer.pointwise.bias)
            v = self._transform(layer, v) + own
            if i < len(model.layers) - 1:
                v = F.gelu(v)
        u = model.decoder(v[..., :frames].permute(0, 2, 3, 1)).squeeze(-1)
        return model.solution.inverse(u.transpose(1, 2))

    def _transform(self, layer: WaveletLayer, v: Tensor) -> Tensor:
        """Forth, a matrix for each of the coarsest coefficients, back."""
        fine: list[Details] = []
        for _ in range(self.level):
            shape = (v.shape[-2], v.shape[-1])
            v, details = self._forth(v)
            fine.append((details, shape))
        bands = torch.cat([v.unsqueeze(2), fine[-1][0]], 2)  # B C 4 X T, bands (low low), (low high), ..; x first
        kx, kt = v.shape[-2:]
        weight = layer.weight.view(2, kt, 2, kx, *layer.weight.shape[1:])
        bands = torch.einsum("bcfgxt,gtfxcd->bdfgxt", bands.unflatten(2, (2, 2)), weight).flatten(2, 3)
        v, fine[-1] = bands[:, :, 0], (bands[:, :, 1:], fine[-1][1])
        for details, shape in reversed(fine):
            v = self._back(v, details)[..., : shape[0], : shape[1]]
        return v

    def _forth(self, v: Tensor) -> tuple[Tensor, Tensor]:
        """Low and high along t, then of both along x: 4 bands of every channel."""
        for dim in (3, 2):
            v = v.index_select(dim, _reflected(v.shape[dim], self.taps))
            filters, stride = self._oriented(dim, v.shape[1])
            v = F.conv2d(v, filters, stride=stride, groups=v.shape[1])
        bands = v.unflatten(1, (-1, 2, 2)).transpose(2, 3).flatten(2, 3)  # axes (x, t), low before high
        return bands[:, :, 0], bands[:, :, 1:]

    def _back(self, v: Tensor, details: Tensor) -> Tensor:
        kx, kt = details.shape[-2:]
        v = torch.cat([v[..., :kx, :kt].unsqueeze(2), details], 2)
        v = v.unflatten(2, (2, 2)).transpose(2, 3).flatten(1, 3)
        for dim in (2, 3):
            groups = v.shape[1] // 2
            filters, stride = self._oriented(dim, groups)
            padding = tuple(self.taps - 2 if s == 2 else 0 for s in stride)
            v = F.conv_transpose2d(v, filters, stride=stride, padding=padding, groups=groups)
        return v

    def _oriented(self, dim: int, channels: int) -> tuple[Tensor, tuple[int, int]]:
        """The pair of filters along one axis for every channel, and the stride."""
        shaped = self.filters.unsqueeze(5 - dim).repeat(channels, 1, 1, 1)
        return shaped, (2, 1) if dim == 2 else (1, 2)


def _reflected(n: int, taps: int) -> Tensor:
    """Indices of a half-sample symmetric continuation such that a stride of 2 gives (n + taps - 1) // 2 outputs."""
    count = (n + taps - 1) // 2
    place = np.arange(2 - taps, 2 - taps + 2 * (count - 1) + taps) % (2 * n)
    return torch.from_numpy(np.where(place < n, place, 2 * n - 1 - place))


def case(batch: int = 20) -> Case:
    """One step on random noise, task xi, 3,844,161 parameters on both sides."""
    torch.manual_seed(0)
    setting = phi41_setting()
    model = build("wno", setting)
    assert isinstance(model, WNO)
    plain = PlainWNO(model)
    dw = torch.randn(batch, *setting.shape)
    dw[:, 0] = 0

    ours, reference = training_step(model, {"dw": dw}), training_step(plain, dw)
    return Case("wno", 3.0, ours, reference, "coarse bands alone, against the whole transform forth and back")
