"""NSPDE: a real kernel on the kept half of the spectrum, against complex transforms of all modes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from spdebench.models.base import build
from speed.models.base import Case, phi41_setting, training_step


class PlainNSPDE(nn.Module):
    """Two-sided complex FFTs, shifted spectra, zero buffers, z_0 transformed once per frame; channels second."""

    def __init__(self, width: int = 32, modes: tuple[int, int] = (64, 50)) -> None:
        super().__init__()
        self.modes = modes
        self.embed = nn.Linear(1, width)
        self.kernel = nn.Parameter(torch.rand(width, width, *modes, dtype=torch.complex64) / width**2)
        self.local = nn.ModuleList(
            nn.Sequential(nn.Conv2d(width, width, 1), nn.BatchNorm2d(width), nn.Tanh()) for _ in range(2)
        )
        self.readout = nn.Sequential(nn.Linear(width, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, u0: Tensor, xi: Tensor) -> Tensor:
        """u0 (B, X), xi (B, X, T) -> u (B, X, T)."""
        z0 = self.embed(u0[..., None]).permute(0, 2, 1)
        start = z = self._flow(z0, xi.shape[-1])
        f, g = (local(z) for local in self.local)
        z = start + self._convolve(f + g * xi[:, None])
        return self.readout(z.permute(0, 2, 3, 1)).squeeze(-1)

    def _window(self, points: int, frames: int) -> tuple[slice, slice]:
        (m, w) = self.modes
        return slice(points // 2 - m // 2, points // 2 + m // 2), slice(frames // 2 - w // 2, frames // 2 + w // 2)

    def _convolve(self, h: Tensor) -> Tensor:
        z = torch.fft.fftshift(torch.fft.fftn(h, dim=(2, 3)), dim=(2, 3))
        kept = self._window(*h.shape[2:])
        out = torch.zeros_like(z)
        out[:, :, kept[0], kept[1]] = torch.einsum("bixt,ioxt->boxt", z[:, :, kept[0], kept[1]], self.kernel)
        return torch.fft.ifftn(torch.fft.ifftshift(out, dim=(2, 3)), dim=(2, 3)).real

    def _flow(self, z0: Tensor, frames: int) -> Tensor:
        kept = self._window(z0.shape[-1], frames)
        spectrum = self.kernel.new_zeros(*self.kernel.shape[:3], frames)
        spectrum[..., kept[1]] = self.kernel
        in_time = torch.fft.ifft(torch.fft.ifftshift(spectrum, dim=-1), dim=-1)
        z = torch.fft.fftshift(torch.fft.fft(z0[..., None].expand(-1, -1, -1, frames), dim=2), dim=2)
        out = torch.zeros_like(z)
        out[:, :, kept[0]] = torch.einsum("bixt,ioxt->boxt", z[:, :, kept[0]], in_time)
        return torch.fft.ifft(torch.fft.ifftshift(out, dim=2), dim=2).real


def case(batch: int = 20) -> Case:
    setting = phi41_setting()
    generator = torch.Generator().manual_seed(0)
    dw = torch.randn((batch, *setting.shape), generator=generator)
    u0 = torch.randn((batch, *setting.grid.points), generator=generator)
    model, plain = build("nspde", setting), PlainNSPDE()
    features, xi = {"dw": dw, "u0": u0}, dw.permute(0, 2, 1).contiguous()

    ours, reference = training_step(model, features), training_step(plain, u0, xi)
    return Case("nspde", 1.5, ours, reference, "hidden 32, 1 Picard iterate, modes (64, 50)")
