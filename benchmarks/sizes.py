"""What a network cannot tell because of its size, and the authors' phi42: for `evidence.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from spdebench import Equation


def unseen(gram: Tensor, width: int) -> float:
    """(sum_{i > width} e_i / sum_i e_i)^(1/2), e the falling eigenvalues of G: u = K dw, G = K'K summed over all that
    is asked of u. It is the relative error left to those who know ``width`` numbers of dw, however well they choose."""
    shares = torch.linalg.eigvalsh(gram).flip(0).clamp_min(0)
    return math.sqrt(float(shares[width:].sum() / shares.sum()))


def heat_response(eq: Equation, every: int) -> Tensor:
    """K(lag, k): what the summed noise of a frame leaves in mode k so many frames later, by implicit Euler steps."""
    ratio = 1 / (1 - eq.horizon / eq.steps * eq.symbol(eq.grid).flatten())
    ages = torch.arange(1, eq.steps + 1).view(-1, eq.steps // eq.frames * every, 1)
    return (ratio**ages).mean(1)


def heat_gram(eq: Equation, every: int) -> Tensor:
    """G(s, s') = sum_{t, k} K(t-s, k) K(t-s', k)."""
    response = heat_response(eq, every)
    lag = torch.arange(len(response))[:, None] - torch.arange(len(response))
    kernel = response[lag.clamp_min(0)] * (lag >= 0)[..., None] * eq.grid.multiplicity().flatten().sqrt()
    return torch.einsum("tsk,trk->sr", kernel, kernel)


def wave_gram(eq: Equation, mean: Tensor) -> Tensor:
    """G(s, s') = sum_{t, k} K(t-s, k) K(t-s', k) sum_x m(s, x) m(s', x), K = sin(w t)/w, m = E u: noise m dW."""
    omega = (-eq.symbol(eq.grid)).clamp_min(1e-12).sqrt()
    time = torch.arange(1, eq.frames + 1) * eq.horizon / eq.frames
    lag = (time[:, None] - time + time[0] / 2)[..., None]
    kernel = torch.sin(omega * lag) / omega * (lag > 0) * eq.grid.multiplicity().sqrt()
    return torch.einsum("tsk,trk->sr", kernel, kernel) * (mean[:-1] @ mean[:-1].T)


def kept(shape: Sequence[int], tops: Sequence[int]) -> Tensor:
    """Whether |k| <= top along each axis of a spectrum."""
    inside = torch.ones(tuple(shape), dtype=torch.bool)
    for axis, (n, top) in enumerate(zip(shape, tops, strict=True)):
        near = torch.fft.fftfreq(n, 1 / n).abs() <= top
        inside &= near.view(-1, *(1,) * (len(shape) - axis - 1))
    return inside


def outside(u: Tensor, tops: Sequence[int]) -> float:
    """|(1 - P)(u - E u)| / |u|, P the modes |k| <= tops along time, then space."""
    axes = tuple(range(1, u.ndim))
    inside = kept(u.shape[1:], tops)
    rest = torch.fft.ifftn(torch.fft.fftn(u - u.mean(0), dim=axes) * ~inside, dim=axes).real
    return relative(rest, u)


def best_filter(u: Tensor, noise: Tensor, tops: Sequence[int]) -> float:
    """Error of E u + S * noise, S periodic in space and time with the modes |k| <= tops, by least squares."""
    axes, half = tuple(range(1, u.ndim)), len(u) // 2
    spread, xi = (torch.fft.fftn(v, dim=axes) for v in (u - u.mean(0), noise))
    kernel = (spread[:half] * xi[:half].conj()).mean(0) / xi[:half].abs().square().mean(0).clamp_min(1e-30)
    rest = torch.fft.ifftn(spread - kernel * kept(u.shape[1:], tops) * xi, dim=axes).real
    return relative(rest[half:], u[half:])


def relative(rest: Tensor, u: Tensor) -> float:
    """Mean of |rest|/|u| over the samples, t_0 left out."""
    return float((rest[:, 1:].flatten(1).norm(dim=1) / u[:, 1:].flatten(1).norm(dim=1)).mean())


def authors_phi42(n: int, modes: int, sigma: float = 0.1) -> tuple[Tensor, Tensor, Tensor]:
    """u, W and X (n, 50, 32, 32) of the authors' renormalised phi42, their closed grid, spacings and drift 3v kept."""
    points, dt, draw = 32, 1e-4, torch.Generator().manual_seed(0)
    x = torch.arange(points, dtype=torch.float64) / (points - 1)
    q = torch.arange(modes)
    angle = 2 * math.pi * ((q + 1) // 2) * x[:, None]
    basis = math.sqrt(2) * torch.where(q % 2 == 1, angle.cos(), angle.sin())
    basis[:, 0] = 1
    cosine = torch.cos(2 * math.pi * torch.arange(points, dtype=torch.float64) / points)
    symbol = dt * points**2 * (2 - cosine[:, None] - cosine)
    symbol[0, 0] = dt / 2
    k = torch.arange(-modes, modes + 1, dtype=torch.float64)
    rates = (8 * math.pi**2 * (k[:, None] ** 2 + k**2)).flatten()
    rates = rates[rates > 0]
    linear, path = torch.zeros(2, n, points, points, dtype=torch.float64)
    v = (torch.sin(2 * math.pi * (x[:, None] + x)) + torch.cos(2 * math.pi * (x[:, None] + x))).repeat(n, 1, 1)
    frames = [(linear + v, path, linear)]
    for step in range(245):
        a = sigma**2 * (step * dt + float(((1 - torch.exp(-rates * step * dt)) / rates).sum()))
        around = sum(v.roll(shift, axis) for shift in (1, -1) for axis in (1, 2))
        u = linear + v
        v = v + dt * ((points - 1) ** 2 * (around - 4 * v) + 3 * v - u**3 + 3 * a * u)
        dw = basis @ torch.randn(n, modes, modes, generator=draw, dtype=torch.float64) @ basis.T * math.sqrt(dt)
        path = path + dw
        linear = torch.fft.ifft2(
            ((1 - symbol) * torch.fft.fft2(linear) + sigma * torch.fft.fft2(dw)) / (1 + symbol)
        ).real
        if step % 5 == 4:
            frames.append((linear + v, path, linear))
    u, path, linear = (torch.stack(fields, 1) for fields in zip(*frames, strict=True))
    return u, path, linear
