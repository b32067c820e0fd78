"""Dynamic Phi^4_1:  d u = (u_xx + mass u - u^3) dt + sigma dW   on [0,1]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spdebench.equations.base import Equation, Map
from spdebench.equations.cubic import Cubic
from spdebench.equations.initial import perturbed
from spdebench.equations.rule import Monomial, Rule
from spdebench.grids import Grid
from spdebench.noise import Seed


@dataclass(frozen=True, kw_only=True)
class Phi41(Equation, name="phi41"):
    """d u = (u_xx + mass u - u^3) dt + sigma dW,  u_0(x) = x(1-x) + kappa eta(x),  t in [0, 0.05].

    Paper, Tables 1 and 2: sigma 0.1 or 1, periodic (Fourier or Haar noise) or Dirichlet (sine), J = 32..256, 1200
    samples. The -L set has 10,000 samples in the paper, which are those for training and validation; we add 2,000 for
    the test. Edition ``paper``: linearly implicit Euler with the three-point Laplacian, dt = 1e-3; strong order 1/4 in
    dt for space-time white noise, 1 for fixed J. Edition ``converged``: Fourier (sine) Galerkin and ETDRK4, noise
    constant in time on each stored interval.
    """

    sigma: float = 0.1
    horizon: float = 0.05
    mass: float = 0.0  # the authors' code has 3

    formula: ClassVar[str] = "u_t = u_xx + mass u - u^3 + sigma xi"
    title: ClassVar[str] = "Dynamic Phi^4_1"
    boundaries: ClassVar = ("periodic", "dirichlet")
    bases: ClassVar = ("fourier", "sine", "haar")
    schemes: ClassVar = {"paper": "semi_implicit", "converged": "etdrk4"}
    remarks: ClassVar[str] = (
        "With the default mass=0 the drift is -u^3 as in the paper's text; the authors' code solves 3u - u^3 (mass=3). "
        "As a periodic function x(1-x) has a kink at 0."
    )

    def symbol(self, grid: Grid, device: torch.device | str = "cpu") -> Tensor:
        return grid.laplacian(difference=self.differences, device=device)

    def drift(self, grid: Grid, device: torch.device | str = "cpu") -> Map:
        return Cubic(self.mass, -1.0)

    def initial(self, grid: Grid, seed: Seed, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        x = grid.coordinates(0, device)
        return perturbed(x * (1 - x), self.kappa, grid, seed, samples)

    @property
    def rule(self) -> Rule:
        linear = (Monomial(self.mass, (1,)),) if self.mass else ()
        return Rule(2.0, -1.5, (Monomial(-1.0, (3,)), *linear, Monomial(self.sigma, (0,), noise=True)))
