"""FNO: transforms as real matrix products and one lift of the noise, against padded FFTs."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from spdebench.models.base import build
from spdebench.models.layers.coordinates import coordinates
from speed.models.base import Case, phi41_setting, training_step


class PlainFNO(nn.Module):
    """FFTs of 57 padded frames, channels second, zero buffers; the noise path is an input at every (x, t)."""

    def __init__(self, frames: int, width: int = 32, layers: int = 3, modes: tuple[int, int] = (32, 25)) -> None:
        super().__init__()
        self.modes = modes
        self.lift = nn.Linear(frames + 2, width)
        shape = (width, width, *modes)
        self.weights = nn.ParameterList(torch.rand(2, *shape, dtype=torch.complex64) / width**2 for _ in range(layers))
        self.local = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(layers))
        self.decode = nn.Sequential(nn.Linear(width, 128), nn.GELU(), nn.Linear(128, 1))

    def forward(self, paths: Tensor, places: Tensor) -> Tensor:
        """paths (B, X, T, T), places (B, X, T, 2) -> u (B, X, T)."""
        h = self.lift(torch.cat([paths, places], dim=-1)).permute(0, 3, 1, 2)
        h = functional.pad(h, (0, 6))
        for i, (weight, local) in enumerate(zip(self.weights, self.local, strict=True)):
            h = self._far(h, weight) + local(h)
            if i < len(self.local) - 1:
                h = functional.gelu(h)
        return self.decode(h[..., :-6].permute(0, 2, 3, 1)).squeeze(-1)

    def _far(self, h: Tensor, weight: Tensor) -> Tensor:
        m, w = self.modes
        z = torch.fft.rfft2(h)
        out = torch.zeros_like(z)
        out[:, :, :m, :w] = torch.einsum("bixt,ioxt->boxt", z[:, :, :m, :w], weight[0])
        out[:, :, -m:, :w] = torch.einsum("bixt,ioxt->boxt", z[:, :, -m:, :w], weight[1])
        return torch.fft.irfft2(out, s=h.shape[-2:])


def case(batch: int = 20) -> Case:
    setting = phi41_setting()
    generator = torch.Generator().manual_seed(0)
    dw = torch.randn((batch, *setting.shape), generator=generator)
    model, plain = build("fno", setting, layers=3), PlainFNO(setting.frames)
    paths = dw.permute(0, 2, 1)[:, :, None, :].expand(-1, -1, setting.frames, -1).contiguous()
    places = coordinates(setting).permute(1, 0, 2).expand(batch, -1, -1, -1)

    ours, reference = training_step(model, {"dw": dw}), training_step(plain, paths, places)
    return Case("fno", 1.5, ours, reference, "width 32, 3 layers, modes (32, 25), 6 padded frames")
