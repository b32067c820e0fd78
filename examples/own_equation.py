"""An equation of your own: the Nagumo equation, a bistable front driven by noise. One file, one class.

On the command line:  spdebench --with examples/own_equation.py generate nagumo sigma=0.2 -n 100

An equation needs two methods, `symbol` (its linear part) and `initial`; its drift is zero unless you give one. The rest
(box, boundary, schemes, noise) has defaults, see `spdebench.Equation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

import spdebench as sb
from spdebench.equations.base import Map
from spdebench.equations.initial import perturbed
from spdebench.noise import Seed


@dataclass(frozen=True, kw_only=True)
class Nagumo(sb.Equation, name="nagumo"):
    """u_t = u_xx + u (1 - u)(u - threshold) + sigma xi,  u_0 = a bump + kappa eta,  t in [0, 0.05]."""

    sigma: float = 0.1
    horizon: float = 0.05
    threshold: float = 0.25

    def symbol(self, grid: sb.Grid, device: torch.device | str = "cpu") -> Tensor:
        return grid.laplacian(difference=self.differences, device=device)

    def drift(self, grid: sb.Grid, device: torch.device | str = "cpu") -> Map:
        return lambda u: u * (1 - u) * (u - self.threshold)

    def initial(self, grid: sb.Grid, seed: Seed, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        x = grid.coordinates(0, device)
        return perturbed(torch.exp(-50 * (x - 0.5) ** 2), self.kappa, grid, seed, samples)


if __name__ == "__main__":
    path = sb.generate(sb.equation("nagumo", points=64, truncation=32), n=20, seed=0, out="data")
    result = sb.verify(sb.open_dataset(path))
    print(f"{path}: {result.identical} of {result.solved} samples solved again have the same bits")
