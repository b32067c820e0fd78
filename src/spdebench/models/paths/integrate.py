"""Controlled differential equations  dz = f(z) dX  on a fixed grid, X linear between the frames.

On interval n this is z' = g(z), g(z) = f(z) (X_{n+1} - X_n), over a unit of time, and one step leads to the next frame:

    euler  (order 1)  z + g(z)
    heun   (order 2)  z + (k1 + k2)/2,              k1 = g(z), k2 = g(z + k1)
    rk4    (order 4)  z + (k1 + 3 k2 + 3 k3 + k4)/8,
                      k1 = g(z), k2 = g(z + k1/3), k3 = g(z - k1/3 + k2), k4 = g(z + k1 - k2 + k3)

The authors' code solves with torchcde and torchdiffeq, where the slope of X at a frame is that of the interval *before*
it: its Euler step is z_n + f(z_n) (X_n - X_{n-1}), which uses the first increment twice and the last one never, and its
rk4 takes the first of four stages from the wrong interval. Its gradients come from the continuous adjoint, which solves
z backwards: three times slower here and not the gradient of what was computed. Both are avoided by stepping over
increments and differentiating the steps themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor

from spdebench.errors import UserError

Solver = Literal["euler", "heun", "rk4"]
Product = Callable[[Tensor, Tensor], Tensor]
"""(z, dX) -> f(z) dX; the vector field computes the product itself, because it knows the structure of f."""


def integrate(field: Product, start: Tensor, increments: Tensor, solver: Solver = "euler") -> Tensor:
    """z_0..z_N, ``(B, N + 1, ..)``, from z_0 ``(B, ..)`` and increments ``(B, N, ..)``."""
    if solver not in _STEPS:
        raise UserError(f"integrate: solver must be one of {', '.join(get_args(Solver))}, got '{solver}'")
    step = _STEPS[solver]
    frames = [start]
    for increment in increments.unbind(1):
        frames.append(step(field, frames[-1], increment))
    return torch.stack(frames, dim=1)


def _euler(field: Product, z: Tensor, dx: Tensor) -> Tensor:
    return z + field(z, dx)


def _heun(field: Product, z: Tensor, dx: Tensor) -> Tensor:
    k1 = field(z, dx)
    return torch.add(z, k1 + field(z + k1, dx), alpha=1 / 2)


def _rk4(field: Product, z: Tensor, dx: Tensor) -> Tensor:
    """The 3/8 rule, torchdiffeq's ``rk4``."""
    k1 = field(z, dx)
    k2 = field(torch.add(z, k1, alpha=1 / 3), dx)
    k3 = field(torch.add(z, k1, alpha=-1 / 3) + k2, dx)
    k4 = field(z + k1 - k2 + k3, dx)
    return torch.add(z, torch.add(k1 + k4, k2 + k3, alpha=3), alpha=1 / 8)


_STEPS: dict[str, Callable[[Product, Tensor, Tensor], Tensor]] = {"euler": _euler, "heun": _heun, "rk4": _rk4}
