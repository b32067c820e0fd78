"""Schemes for u_t = -a u_xxx + b (u^2)_x between impulses of noise u <- u + sigma dW."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from spdebench.equations.base import Equation
from spdebench.equations.propagators import Impulsive
from spdebench.equations.scheme import Scheme
from spdebench.grids import Grid


class NormalForm(Scheme, name="normal_form"):
    """w = u - c (d^-1 u)^2/a obeys w_t + a w_xxx = -(6 c^2/a) (d^-1 u)(u^2 - <u^2>), u of mean 0, c = b/3.

    Differentiation by parts (Babin, Ilyin, Titi 2011, arXiv:0910.1389): in u_t + a u_xxx = b (u^2)_x a triad
    k = k1 + k2 turns with the frequency 3 a k k1 k2, which no affordable step resolves for rough noise; a quadratic
    change of the unknown removes these terms exactly and leaves a cubic right-hand side without derivative. The mean m
    is constant between impulses and only shifts the solution, u(x,t) = m + v(x + 2 b m t, t). w is advanced by the
    integrating-factor Runge-Kutta method of order 4; u is computed from w by ``iterations`` fixed-point iterations, a
    contraction since |d^-1 u| is small. a and b are those that the equation declares in
    `Equation.quadratic_dispersion`. The Nyquist mode of an even number of points, whose derivative the grid cannot
    represent, is left out of u: noise in it has no effect.
    """

    noise_form = "spectral"
    order = 4
    propagator = Impulsive()
    complex_symbol = True
    dims = (1,)
    boundaries = ("periodic",)
    iterations: ClassVar[int] = 2

    @classmethod
    def missing(cls, equation: Equation, grid: Grid) -> list[str]:
        lacking = super().missing(equation, grid)
        if not lacking:
            known = equation.quadratic_dispersion()
            third = grid.derivative(0) * grid.laplacian()
            if not known or min(known) <= 0 or not torch.allclose(equation.symbol(grid), -known[0] * third):
                lacking.append("an equation other than u_t = -a u_xxx + b (u^2)_x, a, b > 0")
        return lacking

    def prepare(self) -> None:
        known = self.equation.quadratic_dispersion()
        assert known is not None
        (a, b), n = known, self.grid.points[0]
        self.fine = self.grid.with_points(3 * n // 2 + n % 2)
        slope = self.grid.derivative(0, device=self.device)
        nonzero = slope.abs() > 0
        self.inverse = torch.where(nonzero, 1 / torch.where(nonzero, slope, 1.0), 0.0)
        self.without_mean = nonzero.to(slope.dtype)  # removes the mean and the Nyquist mode
        self.shift = 2 * b * self.interval * slope
        symbol = self.equation.symbol(self.grid, self.device)
        self.half, self.full = (self.propagator.flow(symbol, t) for t in (self.tau / 2, self.tau))
        self.root, self.factor = (b / 3) ** 0.5 / a**0.5, -6 / a * (b / 3) ** 2

    def start(self, u0: Tensor) -> Tensor:
        return self.grid.transform(u0)

    def _up(self, c: Tensor) -> Tensor:
        """The values on the fine grid of the field with coefficients ``c``."""
        return self.fine.inverse(self.grid.resize(c, self.fine))

    def _down(self, field: Tensor) -> Tensor:
        """The coefficients of a field on the fine grid, without its mean."""
        return self.fine.resize(self.fine.transform(field), self.grid).mul_(self.without_mean)

    def _square(self, c: Tensor) -> Tensor:
        """c (d^-1 u)^2/a on coefficients."""
        return self._down(self._up(c * self.inverse).mul_(self.root).square_())

    def _cubic(self, c: Tensor) -> Tensor:
        """-(6 c^2/a) (d^-1 u)(u^2 - <u^2>) on coefficients."""
        square = self._up(c).square_()
        square -= square.mean(-1, keepdim=True)
        return self._down(square.mul_(self._up(c * self.inverse)).mul_(self.factor))

    def _solve(self, w: Tensor, guess: Tensor) -> Tensor:
        """u with u - c (d^-1 u)^2/a = w, by fixed-point iterations from ``guess``."""
        for _ in range(self.iterations):
            guess = w + self._square(guess)
        return guess

    def step(self, state: Tensor, dw: Tensor) -> Tensor:
        state = state.add(dw, alpha=self.equation.sigma)
        mean = state[..., :1].clone()
        u = state * self.without_mean
        w, tau, half, full = u - self._square(u), self.tau, self.half, self.full
        for _ in range(self.substeps):
            k1 = self._cubic(u)
            u1 = self._solve(half * (w + tau / 2 * k1), half * u)
            k2 = self._cubic(u1)
            u2 = self._solve(half * w + tau / 2 * k2, u1)
            k3 = self._cubic(u2)
            u3 = self._solve(full * w + tau * half * k3, half * u2)
            w = full * (w + tau / 6 * k1) + tau / 3 * half * (k2 + k3) + tau / 6 * self._cubic(u3)
            u = self._solve(w, u3)
        u = u * torch.exp(self.shift * mean.real)
        u[..., :1] = mean
        return u

    def field(self, state: Tensor) -> Tensor:
        return self.grid.inverse(state)
