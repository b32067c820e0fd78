"""Kardar-Parisi-Zhang:  d h = (h_xx + lambda ((h_x)^2) - counterterm) dt + sigma dW^eps   on the unit torus."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from spdebench.equations import renormalise
from spdebench.equations.base import Equation, Map, Renormalisation
from spdebench.equations.dealias import dealiased_square
from spdebench.equations.initial import perturbed
from spdebench.equations.rule import Monomial, Rule
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.noise import Basis, Seed, make_basis, spectra


@dataclass(frozen=True, kw_only=True)
class KPZ(Equation, name="kpz"):
    """d h = (h_xx + coupling (h_x)^2 - C) dt + sigma dW^eps,  h_0 = sin(2 pi x) + cos(2 pi x) + kappa eta,  t <= 0.05.

    W^eps = sum_{|k| <= J/2} phi(k eps) beta_k e_k with the mollifier phi, eps = 1/J (Hairer 2013, section 2.1). Paper,
    Tables 1 and 2: coupling (lambda) 0.5 or 0.05, sigma 0.1 or 1, J = 32..256, 128 points, dt = 1e-3.

    C by ``renormalisation``:
      none   0.
      paper  lambda sigma^2 sum_{k in Z} phi^2(k eps), about lambda sigma^2 J: the paper's formula. It is twice the
             Ito correction, and its sum contains modes that the noise does not have. A deterministic drift -C t
             remains. It grows with J; for sigma = 1 it dominates the denominator of a relative error.
      exact  lambda (E (D X)^2 + sigma^2 phi^2(0)/2), X the stationary linear solution by the scheme, step and
             modes in use. As the step goes to 0 this is the Cole-Hopf constant lambda sigma^2/2 sum phi^2(k eps) over
             the modes in use, the zero mode included, with which E exp(lambda h(t)) = exp(t d_xx) exp(lambda h_0). The
             transient lambda E (D X)^2(t) from X(0) = 0 differs from it by a finite amount, since the modes need their
             time to fill, and does not satisfy that law.

    C shifts h by -C t and changes nothing else. Edition ``paper``: linearly implicit Euler, three-point Laplacian,
    central first difference. Edition ``converged``: Fourier Galerkin and ETDRK4, noise constant on stored intervals.
    """

    noise: Literal["cylindrical"] = "cylindrical"
    sigma: float = 0.1
    horizon: float = 0.05
    coupling: float = 0.5  # lambda
    renormalisation: Renormalisation = "exact"
    resolve_mollifier: bool = False  # keep the modes up to the support of phi, |k| <= 1.0169 J, instead of |k| <= J/2

    formula: ClassVar[str] = "h_t = h_xx + coupling (h_x)^2 - C + sigma xi^eps"
    title: ClassVar[str] = "Kardar-Parisi-Zhang"
    noises: ClassVar = ("cylindrical",)
    schemes: ClassVar = {"paper": "semi_implicit", "converged": "etdrk4"}
    remarks: ClassVar[str] = (
        "The authors' code uses a wrong boundary, h_0 = x(1-x) and the counter-term lambda J without sigma^2; here the "
        "boundary is periodic, h_0 and the counter-term are those of the text (renormalisation=paper) or the one that "
        "the Ito formula asks for (exact)."
    )

    def _validate(self) -> None:
        super()._validate()
        if self.coupling < 0:
            raise UserError(f"kpz: coupling must not be negative, got {self.coupling}")

    def _modes(self) -> int:
        """The truncation of the series: J, or twice the support of the mollifier."""
        return 2 * math.ceil(spectra.bump_radius() * self.truncation) if self.resolve_mollifier else self.truncation

    def series(self) -> Basis:
        return make_basis("fourier", self._modes()) if self.resolve_mollifier else super().series()

    def resolved_points(self) -> int:
        return self.points * -(-2 * max(self.points, self._modes()) // self.points)

    def resolved_substeps(self) -> int:
        return 32

    def eigenvalue_roots(self) -> Tensor:
        k = torch.arange(self.series().pairs)
        return spectra.mollifier(k, self.truncation)[:, None].expand(-1, 2)

    @property
    def noise_label(self) -> str:
        return "mollified cylindrical"

    def symbol(self, grid: Grid, device: torch.device | str = "cpu") -> Tensor:
        return grid.laplacian(difference=self.differences, device=device)

    def drift(self, grid: Grid, device: torch.device | str = "cpu") -> Map:
        """h -> lambda (D_0 h)^2 - C with the central difference D_0."""
        scale, shift = math.sqrt(self.coupling) / (2 * grid.spacing[0]), self.counterterm()

        def growth(h: Tensor) -> Tensor:
            return (h.roll(-1, -1) - h.roll(1, -1)).mul_(scale).square_().sub_(shift)

        return growth

    def nonlinear(self, grid: Grid, device: torch.device | str = "cpu") -> Map:
        """h -> lambda (h_x)^2 - C, de-aliased by the 3/2 rule."""
        square, slope = dealiased_square(grid), math.sqrt(self.coupling) * grid.derivative(0, device=device)
        shift = self.counterterm()

        def growth(c: Tensor) -> Tensor:
            out = square(c * slope)
            out[..., 0] -= shift
            return out

        return growth

    def initial(self, grid: Grid, seed: Seed, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        x = 2 * math.pi * grid.coordinates(0, device)
        return perturbed(torch.sin(x) + torch.cos(x), self.kappa, grid, seed, samples)

    def counterterm(self) -> float:
        """C, which `drift` and `nonlinear` subtract."""
        return renormalise.kpz_counterterm(self)

    @property
    def rule(self) -> Rule:
        terms = (Monomial(self.coupling, (0, 2)), Monomial(-self.counterterm(), (0,)))
        return Rule(2.0, -1.5, (*terms, Monomial(self.sigma, (0,), noise=True)))
