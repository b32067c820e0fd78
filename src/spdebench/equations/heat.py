"""Stochastic heat equation:  d u = diffusivity u_xx dt + sigma dW  or  + sigma u dW   on [0,1]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from spdebench.equations.base import Map
from spdebench.equations.calculus import ItoStratonovich
from spdebench.equations.initial import perturbed
from spdebench.equations.rule import Monomial, Rule
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.noise import Seed


@dataclass(frozen=True, kw_only=True)
class Heat(ItoStratonovich, name="heat"):
    """d u = diffusivity u_xx dt + sigma G(u) dW,  u_0 = 1 + sin(2 pi x) or sin(pi x), + kappa eta,  t in [0, 0.05].

    ``noise_type`` additive, G = 1: u is Gaussian with the mean e^{t L} u_0, and mode k has the variance
    sigma^2 lambda_k (1 - e^{-2 l t})/(2 l), l = -L(k). Multiplicative, G(u) = u, in Ito's sense (or that of
    ``calculus``): the mean is e^{t L} u_0 again, and m(t,x,y) = E u(x) u(y) solves
    m_t = diffusivity (m_xx + m_yy) + sigma^2 q(x,y) m, where q(x,y) is the covariance of W(1). u_0 is 1 + sin(2 pi x)
    on the torus and sin(pi x) with Dirichlet ends.

    The linear equation is the sanity check of a benchmark: with additive noise the model `linear` is exact up to the
    discretisation. Edition ``paper``: linearly implicit Euler, three-point Laplacian. Edition ``converged``: Fourier
    (sine) modes, exact for additive noise, and ETDRK4 path by path for multiplicative noise.
    """

    noise_type: Literal["additive", "multiplicative"] = "additive"
    calculus: Literal["ito", "stratonovich"] = "ito"
    horizon: float = 0.05
    diffusivity: float = 1.0

    formula: ClassVar[str] = "u_t = diffusivity u_xx + sigma xi, or sigma u xi"
    title: ClassVar[str] = "Stochastic heat equation"
    boundaries: ClassVar = ("periodic", "dirichlet")
    bases: ClassVar = ("fourier", "sine", "haar")
    remarks: ClassVar[str] = (
        "Not in the paper. Multiplicative noise (noise_type=multiplicative) has the sense of `calculus`; the "
        "edition whose scheme has the other sense gets a drift correction. With cylindrical noise only Ito's sense has "
        "a limit as J grows: Stratonovich's differs from it by the drift (sigma^2/2) (J+1) u."
    )

    def _validate(self) -> None:
        super()._validate()
        if self.diffusivity <= 0:
            raise UserError(f"heat: diffusivity must be positive, got {self.diffusivity}")

    def resolved_substeps(self) -> int:
        """One with additive noise, for which the scheme is exact with any number of sub-steps."""
        return 32 if self.multiplicative else 1

    def symbol(self, grid: Grid, device: torch.device | str = "cpu") -> Tensor:
        return self.diffusivity * grid.laplacian(difference=self.differences, device=device)

    def drift(self, grid: Grid, device: torch.device | str = "cpu") -> Map:
        """u -> c u, where c is the correction for the calculus; u -> 0 without a correction."""
        rate = self.correction(grid, device)
        return torch.zeros_like if isinstance(rate, float) else lambda u: u * rate

    def initial(self, grid: Grid, seed: Seed, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        x = math.pi * grid.coordinates(0, device)
        return perturbed(1 + torch.sin(2 * x) if grid.periodic else torch.sin(x), self.kappa, grid, seed, samples)

    @property
    def rule(self) -> Rule:
        noise_degree = -1.5 if self.noise == "cylindrical" else 0.0
        return Rule(2.0, noise_degree, (Monomial(self.sigma, (int(self.multiplicative),), noise=True),))
