"""Korteweg-de Vries:  d u = (-dispersion u_xxx + 6 u u_x) dt + sigma dW   on the unit torus."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from spdebench.equations.base import Equation, Map
from spdebench.equations.dealias import dealiased_square
from spdebench.equations.initial import perturbed
from spdebench.equations.rule import Monomial, Rule
from spdebench.grids import Grid
from spdebench.noise import Seed


@dataclass(frozen=True, kw_only=True)
class KdV(Equation, name="kdv"):
    """d u = (-dispersion u_xxx + 6 u u_x) dt + sigma dW,  u_0(x) = sin(2 pi x) + kappa eta(x),  t in [0, 0.5].

    Paper, Tables 1 and 2: sigma 0.1, Q-Wiener or cylindrical, 128 or 256 points, 50 steps (dt = 0.01), J = 32..256.

    The text asks for second-order central differences in time and space, which do not work at this step: the explicit
    third difference needs dt < 2e-7; an implicit one rotates mode 1 by 1.8 instead of 2.5 rad per step; central
    differences on 128 points rotate mode 2 by 2.4 rad too little over [0, 0.5]; and in the authors' own code
    (Crank-Nicolson, explicit Euler) 24 to 40 % of the cylindrical paths blow up and, at J = 128, 93 % of the energy of
    the noise is lost (``spdebench findings kdv``). Edition ``paper`` is the nearest scheme that works on the paper's
    grid and step: the Fourier modes of the 128 points, products de-aliased, the noise as an impulse u <- u + sigma dW
    at the start of each step, and between impulses the flow by `NormalForm` in a few sub-steps. (A dispersive flow
    keeps the energy of an impulse; noise averaged over the step would lose the high modes, whose phases cancel.)
    Edition ``converged`` does the same, with more sub-steps on a grid that resolves J strictly. In both, E|u(t)|^2 =
    |u_0|^2 + sigma^2 Tr(Q) t, where Tr(Q) is without the harmonic N/2 if J = N, the number of points: edition
    ``paper`` leaves the Nyquist mode out of u, and the stored points of edition ``converged`` do not resolve it.
    """

    noise: Literal["cylindrical", "q_wiener"] = "q_wiener"
    sigma: float = 0.1
    horizon: float = 0.5
    dispersion: float = 1.0  # the authors' code has 0.1

    formula: ClassVar[str] = "u_t = -dispersion u_xxx + 6 u u_x + sigma xi"
    title: ClassVar[str] = "Korteweg-de Vries"
    refinement: ClassVar[int] = 6
    schemes: ClassVar = {"paper": "normal_form", "converged": "normal_form"}
    remarks: ClassVar[str] = (
        "Central differences in time and space, as the text asks for, blow up or lose the phases at dt = 0.01; edition "
        "paper uses Fourier modes on the paper's grid and step instead. Noise is an impulse at the start of each "
        "stored interval in both editions."
    )

    def _auto(self) -> dict[str, Any]:
        auto = super()._auto()
        if self.edition == "paper":
            auto["substeps"] = 4
        return auto

    def resolved_substeps(self) -> int:
        return 32 if self.noise == "q_wiener" else 64

    @property
    def differences(self) -> bool:
        return False

    def symbol(self, grid: Grid, device: torch.device | str = "cpu") -> Tensor:
        """i kappa^3 dispersion."""
        return -self.dispersion * grid.derivative(0, device=device) * grid.laplacian(device=device)

    def nonlinear(self, grid: Grid, device: torch.device | str = "cpu") -> Map:
        """u -> 3 d/dx (u^2), de-aliased by the 3/2 rule: mass and energy are conserved to rounding."""
        square, flux = dealiased_square(grid), 3 * grid.derivative(0, device=device)
        return lambda c: square(c).mul_(flux)

    def quadratic_dispersion(self) -> tuple[float, float]:
        return self.dispersion, 3.0

    def initial(self, grid: Grid, seed: Seed, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        mean = torch.sin(2 * math.pi * grid.coordinates(0, device))
        return perturbed(mean, self.kappa, grid, seed, samples)

    @property
    def rule(self) -> Rule:
        """The kernel of d_t + d_xxx is counted as gaining no regularity on the torus.

        6 u u_x is written as the flux 3 d/dx (u^2), symmetric in its factors, as in `nonlinear`.
        """
        noise_degree = -1.0 if self.noise == "cylindrical" else 1.5
        return Rule(0.0, noise_degree, (Monomial(3.0, (2,), form="flux"), Monomial(self.sigma, (0,), noise=True)))
