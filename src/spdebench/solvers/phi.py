"""phi_1(z) = (e^z - 1)/z,  phi_2(z) = (phi_1(z) - 1)/z,  phi_3(z) = (phi_2(z) - 1/2)/z."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def phi_functions(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """phi_1..phi_3 for real or complex z, to about 1e-14: Taylor's series for |z| < 1, the definition elsewhere."""
    small = z.abs() < 1
    near = torch.where(small, z, torch.zeros_like(z))
    far = torch.where(small, torch.ones_like(z), z)
    series = []
    for order in (1, 2, 3):
        total = torch.zeros_like(z)
        for j in range(20, -1, -1):
            total = total * near + 1 / math.factorial(j + order)
        series.append(total)
    p1 = (torch.exp(far) - 1) / far
    p2 = (p1 - 1) / far
    p3 = (p2 - 0.5) / far
    return tuple(torch.where(small, s, p) for s, p in zip(series, (p1, p2, p3), strict=True))  # type: ignore[return-value]
