"""The log-ODE method of order 2 for  dz = f(z) dX:  f acts on log-signatures of windows of the path,

    z_n = z_k + f(z_k) LogSig_{k,n}(X),   k the start of the window that holds frame n,
    LogSig_{k,n} = (X_n - X_k ; A^{ij}_{k,n}, i < j),   A = 1/2 sum_{s<t} dX_s (x) dX_t - dX_t (x) dX_s.

f is evaluated once a window; frames inside it use the log-signature of the part of the window that has passed, so
z_n never sees what comes after n. (Interpolating between window ends would.)
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def log_ode(
    field: Callable[[Tensor], Tensor], start: Tensor, increments: Tensor, window: int, area_weight: float = 1.0
) -> Tensor:
    """z_0..z_N, ``(B, N + 1, h)``; ``field`` maps z ``(B, h)`` to ``(B, h, log-signature channels)``.

    The last window is shorter when ``window`` does not divide N. Log-signatures live for one window only: those of all
    frames of all samples of phi41 would fill 2 GB.
    """
    z, frames = start, [start[:, None]]
    for part in increments.split(window, dim=1):
        inside = z[:, None] + partial_log_signatures(part, area_weight) @ field(z).transpose(1, 2)
        frames.append(inside)
        z = inside[:, -1]
    return torch.cat(frames, dim=1)


def partial_log_signatures(increments: Tensor, area_weight: float = 1.0) -> Tensor:
    """Depth-2 log-signatures from the start to each later point: ``(B, n, d)`` -> ``(B, n, d + d(d-1)/2)``.

    The last one is `spdebench.signatures.log_signature` of the whole piece, in its order, areas times ``area_weight``.
    """
    channels = increments.shape[-1]
    reached = increments.cumsum(dim=1)
    before = reached - increments
    i, j = torch.triu_indices(channels, channels, 1, device=increments.device)
    left, right = increments[..., i], increments[..., j]
    pieces = before[..., i] * right - before[..., j] * left
    return torch.cat([reached, pieces.cumsum(dim=1) * (area_weight / 2)], dim=-1)
