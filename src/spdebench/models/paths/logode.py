"""The log-ODE method of order 2 for  dz = f(z) dX:  f acts on log-signatures of windows of the path,

    z_n = z_k + f(z_k) LogSig_{k,n}(X),   k the start of the window that holds frame n,
    LogSig_{k,n} = (X_n - X_k ; A^{ij}_{k,n}, i < j),   A = 1/2 sum_{s<t} dX_s (x) dX_t - dX_t (x) dX_s.

f is evaluated once per window; frames inside it use the log-signature of the part of the window that has passed, so
z_n never sees what comes after n. (Interpolating between window ends would.)
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

_AT_ONCE = {"cpu": 1 << 20, "cuda": 1 << 25}  # values of log-signatures computed at once: the size of a cache, 128 MB


def log_ode(
    field: Callable[[Tensor], Tensor], start: Tensor, increments: Tensor, window: int, area_weight: float = 1.0
) -> Tensor:
    """z_0..z_N, ``(B, N + 1, h)``; ``field`` maps z ``(B, h)`` to ``(B, h, log-signature channels)``.

    The last window is shorter if ``window`` does not divide N. Log-signatures are computed for several windows at once
    but not for all: those of all frames of all samples of phi41 would fill 2 GB.
    """
    frames = [start]
    for part in increments.split(window * _windows_at_once(increments, window), dim=1):
        filled = functional.pad(part, (0, 0, 0, -part.shape[1] % window))
        pieces = partial_log_signatures(filled.unflatten(1, (-1, window)), area_weight).unbind(1)
        for piece, passed in zip(pieces, part.split(window, dim=1), strict=True):
            z = frames[-1]
            moved = field(z) @ piece[:, : passed.shape[1]].mT
            frames += (z[:, :, None] + moved).unbind(2)
    return torch.stack(frames, dim=1)


def _windows_at_once(increments: Tensor, window: int) -> int:
    """The number of windows whose log-signatures are computed at once."""
    batch, _, channels = increments.shape
    numbers = batch * window * channels * (channels + 1) // 2
    return max(1, _AT_ONCE.get(increments.device.type, 1) // numbers)


def partial_log_signatures(increments: Tensor, area_weight: float = 1.0) -> Tensor:
    """Depth-2 log-signatures from the start to each later point: ``(.., n, d)`` -> ``(.., n, d + d(d-1)/2)``.

    The last one is `spdebench.signatures.log_signature` of the whole path, in its order, areas times ``area_weight``.
    """
    channels = increments.shape[-1]
    reached = increments.cumsum(dim=-2)
    before = reached - increments
    i, j = torch.triu_indices(channels, channels, 1, device=increments.device)
    left, right = increments[..., i], increments[..., j]
    pieces = before[..., i] * right - before[..., j] * left
    return torch.cat([reached, pieces.cumsum(dim=-2) * (area_weight / 2)], dim=-1)
