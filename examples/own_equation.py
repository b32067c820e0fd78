"""An equation of one's own: the Nagumo equation, a bistable front driven by noise. One file, one class.

On the command line:  spdebench --with examples/own_equation.py generate nagumo sigma=0.2 -n 100
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

import spdebench as sb
from spdebench.equations.base import Map, Monomial, Rule
from spdebench.equations.initial import perturbed
from spdebench.grids import Grid


@dataclass(frozen=True, kw_only=True)
class Nagumo(sb.Equation, name="nagumo"):
    """d u = (u_xx + u (1 - u)(u - threshold)) dt + sigma dW,  u_0 = a bump + kappa eta,  t in [0, 0.05]."""

    sigma: float = 0.1
    horizon: float = 0.05
    threshold: float = 0.25

    formula: ClassVar[str] = "u_t = u_xx + u (1 - u)(u - threshold) + sigma xi"
    title: ClassVar[str] = "Nagumo"
    schemes: ClassVar = {"paper": "semi_implicit", "converged": "etdrk4"}

    def symbol(self, grid: Grid, device: torch.device | str = "cpu") -> Tensor:
        return grid.laplacian(difference=self.differences, device=device)

    def drift(self, grid: Grid, device: torch.device | str = "cpu") -> Map:
        return lambda u: u * (1 - u) * (u - self.threshold)

    def initial(self, grid: Grid, seed: int, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        x = grid.coordinates(0, device)
        return perturbed(torch.exp(-50 * (x - 0.5) ** 2), self.kappa, grid, seed, samples)

    @property
    def rule(self) -> Rule:
        a = self.threshold
        reaction = (Monomial(-1.0, (3,)), Monomial(1.0 + a, (2,)), Monomial(-a, (1,)))
        return Rule(2.0, -1.5, (*reaction, Monomial(self.sigma, (0,), noise=True)))


if __name__ == "__main__":
    path = sb.generate(sb.equation("nagumo", points=64, truncation=32), n=20, seed=0, out="data")
    result = sb.verify(sb.open_dataset(path))
    print(f"{path}: {result.identical} of {result.solved} samples solved again have the same bits")
