"""Schemes for equations of second order in time: u_tt = L u + F(u) + sigma G(u) dW/dt, G = 1 for additive noise."""

from __future__ import annotations

import torch
from torch import Tensor

from spdebench.equations.base import Equation
from spdebench.equations.propagators import Rotation, Verlet
from spdebench.equations.scheme import Scheme
from spdebench.grids import Grid


class Leapfrog(Scheme, name="leapfrog"):
    """u^{n+1} - 2u^n + u^{n-1} = tau^2 (A u^n + F(u^n)) + tau sigma G(u^n) dW^{n+1}, A the three-point Laplacian.

    It is computed with the velocity between the frames: v' = v + tau (A u + F(u)) + sigma G(u) dW, u' = u + tau v'; the
    first step has half the deterministic kick. Central differences in time and space have order 2 without noise. The
    strong order in tau is 1 for noise of fixed truncation. For space-time white noise, with the grid refined in
    proportion to tau, it is 1/3, the order of the three-point Laplacian (Quer-Sardanyons and Sanz-Sole 2006). Dirichlet
    ends stay 0. The state is (u, v, fraction of the next kick).
    """

    noise_form = "physical"
    order = 2
    propagator = Verlet()
    time_derivatives = 2
    multiplicative = True
    dims = (1,)

    @classmethod
    def missing(cls, equation: Equation, grid: Grid) -> list[str]:
        lacking = super().missing(equation, grid)
        if not lacking and not torch.allclose(equation.symbol(grid), grid.laplacian(difference=True)):
            lacking.append("a linear part other than the three-point Laplacian")
        return lacking

    def prepare(self) -> None:
        self.drift = self.equation.drift(self.grid, self.device)
        self.scale = self.tau / self.grid.spacing[0] ** 2
        self.gain = self.equation.sigma / self.substeps

    def start(self, u0: Tensor) -> tuple[Tensor, Tensor, float]:
        return u0.clone(), self.equation.velocity(self.grid, self.device).expand_as(u0).clone(), 0.5

    def step(self, state: tuple[Tensor, Tensor, float], dw: Tensor) -> tuple[Tensor, Tensor, float]:
        u, v, fraction = state
        for _ in range(self.substeps):
            v.add_(self.drift(u), alpha=self.tau * fraction)
            self._add_laplacian(v, u, self.scale * fraction)
            if self.equation.multiplicative:
                v.addcmul_(self.equation.diffusion(u), dw, value=self.gain)
            else:
                v.add_(dw, alpha=self.gain)
            if not self.grid.periodic:
                v[..., 0] = 0
            u = u.add_(v, alpha=self.tau)
            fraction = 1.0
        return u, v, fraction

    def _add_laplacian(self, v: Tensor, u: Tensor, scale: float) -> None:
        """Add scale (u_{j-1} - 2 u_j + u_{j+1}) to v."""
        v.add_(u, alpha=-2 * scale)
        v[..., 1:].add_(u[..., :-1], alpha=scale)
        v[..., :-1].add_(u[..., 1:], alpha=scale)
        if self.grid.periodic:
            v[..., 0].add_(u[..., -1], alpha=scale)
            v[..., -1].add_(u[..., 0], alpha=scale)

    def field(self, state: tuple[Tensor, Tensor, float]) -> Tensor:
        return state[0]


class Trigonometric(Scheme, name="trigonometric"):
    """u_tt = L u exactly (rotation of each mode), kicks v += tau (F(u) + sigma G(u) dW/h): Strang, composed to order 4.

    The noise is constant over the interval h. A step consists of five Strang steps of lengths g, g, 1-4g, g, g with
    g = 1/(4 - 4^(1/3)) (Suzuki 1990). Against the continuous path the strong order in h is 1 for noise of fixed
    truncation and 1/2 for space-time white noise, as for the stochastic trigonometric method (Cohen and Quer-Sardanyons
    2016).
    """

    noise_form = "physical"
    order = 4
    propagator = Rotation()
    time_derivatives = 2
    multiplicative = True

    @classmethod
    def missing(cls, equation: Equation, grid: Grid) -> list[str]:
        lacking = super().missing(equation, grid)
        if not lacking and float(equation.symbol(grid).max()) > 0:
            lacking.append("a linear part that grows")
        return lacking

    def prepare(self) -> None:
        self.drift = self.equation.drift(self.grid, self.device)
        omega = (-self.equation.symbol(self.grid, self.device)).sqrt()
        g = 1 / (4 - 4 ** (1 / 3))
        self.stages = []
        for part in (g, g, 1 - 4 * g, g, g):
            coefficients = self.propagator.coefficients(omega, omega * part * self.tau, part * self.tau)
            self.stages.append((part * self.tau, *coefficients))

    def start(self, u0: Tensor) -> tuple[Tensor, Tensor]:
        v0 = self.equation.velocity(self.grid, self.device).expand_as(u0)
        return self.grid.transform(u0), self.grid.transform(v0)

    def step(self, state: tuple[Tensor, Tensor], dw: Tensor) -> tuple[Tensor, Tensor]:
        u, v = state
        rate = dw * (self.equation.sigma / self.interval)
        kick = self._force(u, rate)
        for _ in range(self.substeps):
            for tau, cosine, sine, turned in self.stages:
                half = v + (tau / 2) * kick
                u, v = cosine * u + sine * half, turned * u + cosine * half
                kick = self._force(u, rate)
                v = v + (tau / 2) * kick
        return u, v

    def _force(self, c: Tensor, rate: Tensor) -> Tensor:
        """F(u) + sigma G(u) dW/h on coefficients; ``rate`` is sigma dW/h at the points."""
        u = self.grid.inverse(c)
        force = self.drift(u)
        force = force.addcmul_(self.equation.diffusion(u), rate) if self.equation.multiplicative else force.add_(rate)
        if not self.grid.periodic:
            for axis in self.grid.axes:
                force.select(axis, 0).zero_()
        return self.grid.transform(force)

    def field(self, state: tuple[Tensor, Tensor]) -> Tensor:
        return self.grid.inverse(state[0])
