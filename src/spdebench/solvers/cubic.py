"""g_n u + b u^3 + gain dW at every point: the explicit half of a linearly implicit step with a cubic drift."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from spdebench.accel.load import kernel


class CubicStep:
    """(u, dW, n) -> g_n u + b u^3 + gain dW, one g for each noise interval n; one pass over memory on a GPU."""

    def __init__(self, growth: Sequence[float], cube: float, gain: float, device: torch.device | str = "cpu") -> None:
        self.cube, self.gain = cube, gain
        self.growth = torch.tensor(growth, dtype=torch.float64, device=device)
        self.factors = torch.tensor([cube, gain], dtype=torch.float64, device=device)

    def __call__(self, u: Tensor, dw: Tensor, n: int) -> Tensor:
        if u.is_cuda and (fused := kernel("spdebench.accel.cubic", "cubic")) is not None:
            out: Tensor = fused(u, dw, self.growth[n], self.factors)
            return out
        return torch.addcmul(self.growth[n], u, u, value=self.cube).mul_(u).add_(dw, alpha=self.gain)
