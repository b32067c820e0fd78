"""Stochastic Kuramoto-Sivashinsky:  d u = (-u_xx - u_xxxx - u u_x) dt + sigma dW   on the torus of length 32."""

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
from spdebench.grids import Grid
from spdebench.noise import Seed


@dataclass(frozen=True, kw_only=True)
class KuramotoSivashinsky(Equation, name="ks"):
    """d u = (-u_xx - u_xxxx - u u_x) dt + sigma dW,  u_0 = cos(2 y)(1 + sin y) + kappa eta,  y = 2 pi x/32,  t <= 50.

    Harmonics with 0 < |kappa| < 1 grow, those with |kappa| > 1 are damped, and the transport term carries energy from
    the first to the second: cells of about 9 units of length that merge and split. On this length the deterministic
    equation is chaotic. The transport term conserves the energy, so that
    d E|u|^2 = (sigma^2 Tr(Q) + 2 E|u_x|^2 - 2 E|u_xx|^2) dt, |u|^2 the integral of u^2; the mean of u is a Brownian
    motion.

    The linear part is written as L + 1/4 with L = -(Laplacian + 1/2)^2 <= 0, so that schemes and kernels have a linear
    part that does not grow; u/4 belongs to the drift. Both editions are Fourier Galerkin and ETDRK4 with noise that is
    constant on stored intervals, ``paper`` on the stored grid with 4 sub-steps, ``converged`` on a finer one with 16:
    chaos would turn the errors of a scheme of first order into another solution by t = 50.
    """

    sigma: float = 0.2
    horizon: float = 50.0
    truncation: int = 32
    frames: int = 100
    steps: int = 100

    formula: ClassVar[str] = "u_t = -u_xx - u_xxxx - u u_x + sigma xi"
    title: ClassVar[str] = "Stochastic Kuramoto-Sivashinsky"
    upper: ClassVar[float] = 32.0
    schemes: ClassVar = {"paper": "etdrk4", "converged": "etdrk4"}
    remarks: ClassVar[str] = (
        "Not in the paper. Chaotic: a small difference between two solutions grows about a hundredfold up to t = 50, "
        "and so do the errors of the stored noise and of a model. The noise is constant on each stored interval."
    )

    def _auto(self) -> dict[str, Any]:
        return super()._auto() | ({"substeps": 4} if self.edition == "paper" else {})

    def resolved_substeps(self) -> int:
        return 16

    @property
    def differences(self) -> bool:
        return False

    def symbol(self, grid: Grid, device: torch.device | str = "cpu") -> Tensor:
        return -(grid.laplacian(device=device) + 0.5).square()

    def nonlinear(self, grid: Grid, device: torch.device | str = "cpu") -> Map:
        """u -> u/4 - (u^2)_x/2, de-aliased by the 3/2 rule."""
        square, flux = dealiased_square(grid), -0.5 * grid.derivative(0, device=device)
        return lambda c: square(c).mul_(flux).add_(c, alpha=0.25)

    def initial(self, grid: Grid, seed: Seed, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        x = 2 * math.pi / grid.lengths[0] * grid.coordinates(0, device)
        return perturbed(torch.cos(2 * x) * (1 + torch.sin(x)), self.kappa, grid, seed, samples)

    @property
    def rule(self) -> Rule:
        """The kernel of a fourth-order operator gains 4; space-time white noise has the degree -5/2 in its scaling."""
        noise_degree = -2.5 if self.noise == "cylindrical" else 0.0
        drift = (Monomial(-0.5, (2,), form="flux"), Monomial(0.25, (1,)))
        return Rule(4.0, noise_degree, (*drift, Monomial(self.sigma, (0,), noise=True)))
