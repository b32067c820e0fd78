"""Stochastic Burgers:  d u = (viscosity u_xx - u u_x) dt + sigma dW   on the unit torus."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from spdebench.equations.base import Equation, Map
from spdebench.equations.dealias import dealiased_square
from spdebench.equations.initial import perturbed
from spdebench.equations.rule import Monomial, Rule
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.noise import Seed


@dataclass(frozen=True, kw_only=True)
class Burgers(Equation, name="burgers"):
    """d u = (viscosity u_xx - u u_x) dt + sigma dW,  u_0 = sin(2 pi x) + kappa eta,  t in [0, 0.5].

    Without noise u_0 steepens into a shock of width about 4 viscosity at t = 1/(2 pi); the noise roughens it and moves
    it, since the mean of u is a Brownian motion. The transport term conserves the energy, so that
    d E|u|^2 = (sigma^2 Tr(Q) - 2 viscosity E|u_x|^2) dt, |u|^2 the integral of u^2.

    With viscosity 1, u = -2 coupling h_x for the solution h of `kpz` whose noise is W, if u is driven by the increments
    -2 coupling d_x dW: this holds path by path for noise that is constant on intervals.

    Edition ``paper``: linearly implicit Euler, three-point Laplacian, the transport term as
    -(D_0(u^2) + u D_0 u)/3 with the central difference D_0, which conserves the energy of the grid. Each step has 16
    sub-steps, over which the increment is spread, because the explicit transport term needs u^2 tau < 2 viscosity.
    Edition ``converged``: Fourier Galerkin and ETDRK4, noise constant on stored intervals.
    """

    sigma: float = 0.2
    horizon: float = 0.5
    viscosity: float = 0.02

    formula: ClassVar[str] = "u_t = viscosity u_xx - u u_x + sigma xi"
    title: ClassVar[str] = "Stochastic Burgers"
    remarks: ClassVar[str] = (
        "Not in the paper. With space-time white noise the solution is a continuous function of Hoelder exponent below "
        "1/2 and needs no renormalisation. In both editions the noise is constant on each stored interval."
    )

    def _validate(self) -> None:
        super()._validate()
        if self.viscosity <= 0:
            raise UserError(f"burgers: viscosity must be positive, got {self.viscosity}")

    def _auto(self) -> dict[str, Any]:
        return super()._auto() | ({"substeps": 16} if self.edition == "paper" else {})

    def resolved_substeps(self) -> int:
        return 8

    def symbol(self, grid: Grid, device: torch.device | str = "cpu") -> Tensor:
        return self.viscosity * grid.laplacian(difference=self.differences, device=device)

    def drift(self, grid: Grid, device: torch.device | str = "cpu") -> Map:
        """u -> -(D_0(u^2) + u D_0 u)/3."""
        scale = -1 / (6 * grid.spacing[0])

        def transport(u: Tensor) -> Tensor:
            after, before = u.roll(-1, -1), u.roll(1, -1)  # u+^2 - u-^2 + u (u+ - u-) = (u+ - u-) (u + u+ + u-)
            return (after - before).mul_(after.add_(before).add_(u)).mul_(scale)

        return transport

    def nonlinear(self, grid: Grid, device: torch.device | str = "cpu") -> Map:
        """u -> -(u^2)_x/2, de-aliased by the 3/2 rule: the energy is conserved to rounding."""
        square, flux = dealiased_square(grid), -0.5 * grid.derivative(0, device=device)
        return lambda c: square(c).mul_(flux)

    def initial(self, grid: Grid, seed: Seed, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        mean = torch.sin(2 * math.pi * grid.coordinates(0, device))
        return perturbed(mean, self.kappa, grid, seed, samples)

    @property
    def rule(self) -> Rule:
        """-u u_x is written as -d/dx (u^2)/2; white noise has the degree -3/2, Q-Wiener noise counts as smooth."""
        noise_degree = -1.5 if self.noise == "cylindrical" else 0.0
        return Rule(2.0, noise_degree, (Monomial(-0.5, (2,), form="flux"), Monomial(self.sigma, (0,), noise=True)))
