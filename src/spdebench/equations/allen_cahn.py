"""Stochastic Allen-Cahn:  d u = (diffusivity u_xx + rate (u - u^3)) dt + sigma (1 - u^2) o dW   on the unit torus."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from spdebench.equations.base import Map
from spdebench.equations.calculus import ItoStratonovich
from spdebench.equations.cubic import Cubic
from spdebench.equations.initial import perturbed
from spdebench.equations.rule import Monomial, Rule
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.noise import Seed


@dataclass(frozen=True, kw_only=True)
class AllenCahn(ItoStratonovich, name="allen_cahn"):
    """d u = (diffusivity u_xx + rate (u - u^3)) dt + sigma G(u) dW,  u_0 = tanh(2 sin(4 pi x) + kappa eta),  t <= 1.

    ``noise_type`` multiplicative: G(u) = 1 - u^2, in the sense of ``calculus``; additive: G = 1. Between the phases -1
    and 1 there are interfaces of width w = sqrt(2 diffusivity/rate). Multiplicative noise vanishes in the phases and
    moves the interfaces: for u = tanh((x - a)/w) it is w sigma u_x o dW, so that a moves by -w sigma dW.

    With multiplicative noise -1 and 1 are solutions, and every solution with |u_0| <= 1 stays between them: in either
    sense, and path by path for noise that is constant on intervals. If a solution in Stratonovich's sense is constant
    in space, Y = artanh u obeys dY = rate tanh(Y) dt + sigma dB.

    Edition ``paper``: linearly implicit Euler, three-point Laplacian, G at the start of the step. The linear part does
    not increase max |u|; the explicit part keeps |u| <= 1 as long as |sigma dW| <= 1/2 - tau rate, so that a large
    increment may take u a little beyond 1. Edition ``converged``: Fourier Galerkin and ETDRK4, path by path; |u| <= 1
    up to the error of the modes.
    """

    noise: Literal["cylindrical", "q_wiener"] = "q_wiener"
    sigma: float = 1.0
    diffusivity: float = 0.005
    rate: float = 5.0
    steps: int = 200

    formula: ClassVar[str] = "u_t = diffusivity u_xx + rate (u - u^3) + sigma (1 - u^2) xi"
    title: ClassVar[str] = "Stochastic Allen-Cahn"
    remarks: ClassVar[str] = (
        "Not in the paper. Multiplicative noise (noise_type=multiplicative) has the sense of `calculus`; the "
        "edition whose scheme has the other sense gets a drift correction. With cylindrical noise only Ito's sense has "
        "a limit as J grows: Stratonovich's differs from it by the drift -sigma^2 (J+1) u (1 - u^2)."
    )

    def _validate(self) -> None:
        super()._validate()
        for key in ("diffusivity", "rate"):
            if getattr(self, key) <= 0:
                raise UserError(f"allen_cahn: {key} must be positive, got {getattr(self, key)}")

    def resolved_substeps(self) -> int:
        return 16

    def diffusion(self, u: Tensor) -> Tensor:
        return 1 - u.square()

    def symbol(self, grid: Grid, device: torch.device | str = "cpu") -> Tensor:
        return self.diffusivity * grid.laplacian(difference=self.differences, device=device)

    def drift(self, grid: Grid, device: torch.device | str = "cpu") -> Map:
        """u -> (rate - 2 c) (u - u^3), because the correction is c G G' = -2 c u (1 - u^2)."""
        rate = self.rate - 2 * self.correction(grid, device)
        if isinstance(rate, float):
            return Cubic(rate, -rate)
        return lambda u: torch.addcmul(u, u.square(), u, value=-1).mul_(rate)

    def initial(self, grid: Grid, seed: Seed, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        mean = 2 * torch.sin(4 * math.pi * grid.coordinates(0, device))
        return perturbed(mean, self.kappa, grid, seed, samples).tanh_()

    @property
    def rule(self) -> Rule:
        """The correction of the drift is left out: it is proportional to u - u^3 too, so the products are the same."""
        drift = (Monomial(self.rate, (1,)), Monomial(-self.rate, (3,)))
        noise = (Monomial(self.sigma, (0,), noise=True), Monomial(-self.sigma, (2,), noise=True))
        noise_degree = -1.5 if self.noise == "cylindrical" else 0.0
        return Rule(2.0, noise_degree, (*drift, *noise[: 1 + self.multiplicative]))
