"""Ito and Stratonovich:  sigma G(u) o dW = sigma G(u) dW + (sigma^2/2) q(x,x) G(u) G'(u) dt,  q(x,x) = E dW(x)^2/dt.

Edition ``paper`` takes G at the start of a step, which is Ito's sense. Edition ``converged`` solves path by path with
noise that is constant on intervals, whose limit is Stratonovich's sense. An equation of the class `ItoStratonovich`
means one of the two in both editions, and its drift gets the correction in the edition whose scheme means the other.

For cylindrical noise q(x,x) = (J+1)/L on a torus of length L: the correction grows with J, and only Ito's sense has a
limit. For trace-class noise (q_wiener) both have one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from spdebench.equations.base import Equation
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
        """Whether the scheme's sense is not the equation's."""
        return self.multiplicative and self.calculus != ("ito" if self.edition == "paper" else "stratonovich")

    def correction(self, grid: Grid, device: torch.device | str = "cpu") -> Tensor | float:
        """The factor of G G' in the drift: sigma^2 q/2 if the equation is Stratonovich's and the scheme Ito's, minus
        that if it is the other way round, 0 where they agree or the noise is additive."""
        if not self._corrected:
            return 0.0
        sign = 0.5 if self.calculus == "stratonovich" else -0.5
        return sign * self.sigma**2 * self.intensity(grid).to(device)

    def intensity(self, grid: Grid) -> Tensor:
        """q(x,x) = sum_q lambda_q phi_q(x)^2 at the points of a grid, the functions as the solver's grid holds them."""
        solving, converged = self.solving_grid, self.edition == "converged"
        noise = Wiener(self.series(), self.eigenvalue_roots(), solving, converged)
        total = torch.zeros(grid.points, dtype=torch.float64)
        for part, unit in ((0, 1.0), (1, 1.0j)):
            for some in (noise.basis.index[:, part] > 0).nonzero().flatten().split(128):
                single = torch.zeros(len(some), noise.basis.pairs, dtype=torch.complex128)
                single[torch.arange(len(some)), some] = noise.roots[some, part].to(single.dtype) * unit
                total += grid.inverse(solving.resize(noise.spectral(single), grid)).square().sum(0)
        return total

    def caution(self) -> str:
        if not self.multiplicative or self.noise != "cylindrical":
            return ""
        if self.calculus == "ito" and self.edition == "paper":
            return ""
        return (
            f"{self.name}: multiplicative cylindrical noise, calculus={self.calculus}, edition={self.edition}: the "
            f"drift correction (sigma^2/2) G G' (J+1)/L grows with J, so that this is an equation at fixed J only; use "
            f"noise=q_wiener, or edition=paper with calculus=ito"
        )
