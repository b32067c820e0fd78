"""Stochastic wave equation:  u_tt = u_xx + cos(pi u) + u^2 + sigma u xi   on [0,1], Ito."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spdebench.equations.base import Equation, Map
from spdebench.equations.initial import perturbed
from spdebench.equations.rule import Monomial, Rule
from spdebench.grids import Grid
from spdebench.noise import Seed


@dataclass(frozen=True, kw_only=True)
class Wave(Equation, name="wave"):
    """u_tt = u_xx + forcing (cos(pi u) + u^2) + sigma u dW/dt,  u_0 = sin(2 pi x) + kappa eta,  u_t(0) = x(1-x).

    Paper, Tables 1 and 2: t in [0, 0.5], dt = 1e-3, 500 steps of which every fifth is stored, J = 32..256, periodic
    (Fourier) or Dirichlet (sine). Edition ``paper``: central differences in time and space (leapfrog with staggered
    velocity; order 2 for sigma = 0), the noise at the left point. Ito and Stratonovich agree here, since u has no
    quadratic covariation with W. Edition ``converged``: Fourier (sine) modes, exact rotation, fourth-order splitting.
    With Dirichlet data the boundary values are held at 0 exactly; cos(0) = 1 does not vanish there, so the sine
    coefficients of u decay like k^-3 only.
    """

    sigma: float = 1.0
    horizon: float = 0.5
    frames: int = 100
    steps: int = 500
    forcing: float = 1.0  # factor of cos(pi u) + u^2; 0 leaves the linear multiplicative equation

    formula: ClassVar[str] = "u_tt = u_xx + forcing (cos(pi u) + u^2) + sigma u xi"
    title: ClassVar[str] = "Stochastic wave equation"
    order: ClassVar[int] = 2
    boundaries: ClassVar = ("periodic", "dirichlet")
    bases: ClassVar = ("fourier", "sine", "haar")
    refinement: ClassVar[int] = 4
    schemes: ClassVar = {"paper": "leapfrog", "converged": "trigonometric"}
    remarks: ClassVar[str] = (
        "Every fifth frame is stored and the noise of five steps is summed: the path between is not in the file."
    )

    @property
    def multiplicative(self) -> bool:
        return True

    def resolved_points(self) -> int:
        return super().resolved_points() * (1 if self.boundary == "periodic" else 2)

    def resolved_substeps(self) -> int:
        return 4

    def symbol(self, grid: Grid, device: torch.device | str = "cpu") -> Tensor:
        return grid.laplacian(difference=self.differences, device=device)

    def drift(self, grid: Grid, device: torch.device | str = "cpu") -> Map:
        def force(u: Tensor) -> Tensor:
            if self.forcing == 0:
                return torch.zeros_like(u)
            force = (u * math.pi).cos_().addcmul_(u, u)
            return force if self.forcing == 1 else force.mul_(self.forcing)

        return force

    def initial(self, grid: Grid, seed: Seed, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        mean = torch.sin(2 * math.pi * grid.coordinates(0, device))
        return perturbed(mean, self.kappa, grid, seed, samples)

    def velocity(self, grid: Grid, device: torch.device | str = "cpu") -> Tensor:
        x = grid.coordinates(0, device)
        return x * (1 - x)

    @property
    def rule(self) -> Rule:
        """cos(pi u) = 1 - pi^2 u^2/2 + O(u^4): with u^2 this is 1 + (1 - pi^2/2) u^2."""
        quadratic = self.forcing * (1 - math.pi**2 / 2)
        terms = (Monomial(self.forcing, (0,)), Monomial(quadratic, (2,)), Monomial(self.sigma, (1,), noise=True))
        return Rule(1.0, -1.0, terms)
