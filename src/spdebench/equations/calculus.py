"""Ito and Stratonovich:  sigma G(u) o dW = sigma G(u) dW + (sigma^2/2) q(x,x) G(u) G'(u) dt,  q(x,x) = E dW(x)^2/dt.

Edition ``paper`` evaluates G at the start of a step, which is Ito's sense. Edition ``converged`` solves path by path
with noise that is constant on intervals, whose limit is Stratonovich's sense. An equation of the class
`ItoStratonovich` has the same sense in both editions: the edition whose scheme has the other sense adds the correction
to the drift.

For cylindrical noise q(x,x) = (J+1)/L on a torus of length L: the two senses differ by a drift that grows with J, and
only Ito's has a limit. For trace-class noise (q_wiener) both have one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from spdebench.equations.base import Equation
from spdebench.equations.propagators import phi_functions
from spdebench.grids import Grid
from spdebench.noise import Wiener


@dataclass(frozen=True, kw_only=True)
class ItoStratonovich(Equation):
    """An equation whose noise is additive or multiplicative, the latter in the sense of Ito or of Stratonovich."""

    noise_type: Literal["additive", "multiplicative"] = "multiplicative"  # sigma dW or sigma G(u) dW
    calculus: Literal["ito", "stratonovich"] = "stratonovich"  # the sense of multiplicative noise, in both editions

    @property
    def multiplicative(self) -> bool:
        return self.noise_type == "multiplicative"

    @property
    def _corrected(self) -> bool:
        """Whether the scheme's sense differs from the equation's, so that the drift needs the correction."""
        return self.multiplicative and self.calculus != ("ito" if self.edition == "paper" else "stratonovich")

    def correction(self, grid: Grid, device: torch.device | str = "cpu") -> Tensor | float:
        """The factor of G G' in the drift; 0 if scheme and equation have the same sense or the noise is additive.

        Stratonovich's equation solved by Ito's scheme: (sigma^2/2) q(x,x). Ito's equation solved with noise that is
        constant on intervals of length h: -(sigma^2/2) sum_q lambda_q phi_q psi(-h L) phi_q with
        psi(z) = 2 (e^-z - 1 + z)/z^2, psi(0) = 1, because a mode that decays within the interval contributes less.
        """
        if not self._corrected:
            return 0.0
        if self.calculus == "stratonovich":
            return 0.5 * self.sigma**2 * self.intensity(grid).to(device)
        decay = self.horizon / self.noise_steps * self.symbol(self.solving_grid)
        return -0.5 * self.sigma**2 * self.intensity(grid, 2 * phi_functions(decay)[1]).to(device)

    def intensity(self, grid: Grid, weight: Tensor | float = 1.0) -> Tensor:
        """q(x,x) = sum_q lambda_q phi_q(x) (w phi_q)(x) at the points of ``grid``; ``weight`` w is 1 or a symbol w(k).

        The basis functions are those that the solving grid represents, aliasing included.
        """
        solving, converged = self.solving_grid, self.edition == "converged"
        noise = Wiener(self.series(), self.eigenvalue_roots(), solving, converged)
        total = torch.zeros(grid.points, dtype=torch.float64)
        for c in noise.functions():
            values, weighted = (grid.inverse(solving.resize(x, grid)) for x in (c, c * weight))
            total += (values * weighted).sum(0)
        return total

    def caution(self) -> str:
        if not self.multiplicative or self.noise != "cylindrical" or self.calculus == "ito":
            return ""
        return (
            f"{self.name}: multiplicative cylindrical noise in Stratonovich's sense differs from Ito's by the drift "
            f"(sigma^2/2) G G' (J+1)/L, which grows with J, so that this is an equation at fixed J only; use "
            f"calculus=ito or noise=q_wiener"
        )
