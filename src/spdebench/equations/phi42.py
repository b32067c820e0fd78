"""Dynamic Phi^4_2:  d u = (Laplacian u - u^3 + 3 a(t) u) dt + sigma dW   on the unit torus, a = E X^2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from spdebench.equations import renormalise
from spdebench.equations.base import Equation, Map, Renormalisation
from spdebench.equations.cubic import Cubic
from spdebench.equations.initial import perturbed
from spdebench.equations.rule import Monomial, Rule
from spdebench.grids import Grid
from spdebench.noise import Seed


@dataclass(frozen=True, kw_only=True)
class Phi42(Equation, name="phi42"):
    """d u = (Laplacian u - u^3 + 3 a(t) u) dt + sigma dW,  u_0 = (sin + cos)(2 pi (x+y)) + kappa eta,  t <= 0.025.

    With u = X + v, X the linear solution from 0, -u^3 + 3 a u is minus the Wick cube v^3 + 3 v^2 X + 3 v (X^2 - a) +
    X^3 - 3 a X. Paper, Tables 1 and 2: sigma 0.1, J = 2, 8, 32, 64, 128, 32 x 32 points, 250 steps; |k_i| <= J/2.

    a(t) by ``renormalisation``:
      none   0: no renormalisation. The scheme is the same, so that only the counter-term differs.
      paper  sigma^2 (t + sum_{0 < |k| <= J} (1 - e^{-2 l t})/(2 l)), l = 4 pi^2 |k|^2: the paper's Algorithm 1. Its
             ball |k| <= J has more modes than the noise.
      exact  E X^2 of the modes, grid and scheme in use, aliasing included.

    Edition ``paper``: Algorithm 2, X by Crank-Nicolson with the five-point eigenvalues and v by explicit Euler.
    Edition ``converged``: Fourier Galerkin on a grid that resolves J and ETDRK4, noise constant on stored intervals, a
    averaged over each interval (paper: at its middle).
    """

    noise: Literal["cylindrical"] = "cylindrical"
    truncation: int = 32
    sigma: float = 0.1
    horizon: float = 0.025
    points: int = 32
    frames: int = 250
    steps: int = 250
    renormalisation: Renormalisation = "paper"

    formula: ClassVar[str] = "u_t = Laplacian u - u^3 + 3 a(t) u + sigma xi"
    title: ClassVar[str] = "Dynamic Phi^4_2"
    dim: ClassVar[int] = 2
    noises: ClassVar = ("cylindrical",)
    refinement: ClassVar[int] = 4
    schemes: ClassVar = {"paper": "wick", "converged": "etdrk4"}
    remarks: ClassVar[str] = (
        "The authors' code adds 3v to the drift (3u without renormalisation), treats a closed grid as periodic, and "
        "lags the noise of the bare equation by one step; here both solve the text's equation by one scheme. The "
        "paper's constant sums the ball |k| <= J, the noise has |k_i| <= J/2 and aliases on 32 points for J > 32: a(t) "
        "and E X^2 differ (renormalisation=exact takes the latter)."
    )

    def resolved_points(self) -> int:
        """Twice the stored points and more than J, in multiples of the stored points."""
        return self.points * -(-max(2 * self.points, self.truncation + 1) // self.points)

    def resolved_substeps(self) -> int:
        return 1

    def symbol(self, grid: Grid, device: torch.device | str = "cpu") -> Tensor:
        return grid.laplacian(difference=self.differences, device=device)

    def drift(self, grid: Grid, device: torch.device | str = "cpu") -> Map:
        """-u^3; the counter-term comes with `counterterm_rates`."""
        return Cubic(0.0, -1.0)

    def initial(self, grid: Grid, seed: Seed, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        x, y = grid.mesh(device)
        phase = 2 * math.pi * (x + y)
        return perturbed(torch.sin(phase) + torch.cos(phase), self.kappa, grid, seed, samples)

    def counterterm_rates(self) -> Sequence[float]:
        return renormalise.phi42_counterterm_rates(self)

    @property
    def rule(self) -> Rule:
        """The linear term has the coefficient 3 a of the last interval."""
        linear = (Monomial(rates[-1], (1,)),) if (rates := self.counterterm_rates()) else ()
        return Rule(2.0, -2.0, (Monomial(-1.0, (3,)), *linear, Monomial(self.sigma, (0,), noise=True)))
