"""Crank-Nicolson for the linear part, explicit Euler for the rest."""

from __future__ import annotations

import torch
from torch import Tensor

from spdebench.equations.propagators import CRANK_NICOLSON
from spdebench.equations.scheme import Scheme


class CrankNicolson(Scheme, name="crank_nicolson"):
    """c' = (1 - tau L/2)^-1 ((1 + tau L/2) c + tau (F(c) + m_n c) + sigma dW) on coefficients.

    Order 2 for the linear part, 1 with F. Strong order 1 for additive noise that is smooth in space. With sub-steps the
    increment is spread evenly over them.
    """

    noise_form = "spectral"
    order = 1
    propagator = CRANK_NICOLSON
    counterterms = True
    complex_symbol = True

    def prepare(self) -> None:
        self.nonlinear = self.equation.nonlinear(self.grid, self.device)
        symbol = self.equation.symbol(self.grid, self.device)
        self.kept = self.propagator.numerator(symbol, self.tau) / self.tau
        self.damping = self.tau / self.propagator.denominator(symbol, self.tau)
        self.gain = self.equation.sigma / self.substeps / self.tau
        self.real_factors = self.grid.periodic and not symbol.is_complex()  # multiply real and imaginary parts
        if self.real_factors:
            self.kept, self.damping = self.kept[..., None].contiguous(), self.damping[..., None].contiguous()

    def start(self, u0: Tensor) -> tuple[Tensor, int]:
        return self.grid.transform(u0), 0

    def step(self, state: tuple[Tensor, int], dw: Tensor) -> tuple[Tensor, int]:
        c, n = state
        rate = self.counterterm_rate(n)
        for _ in range(self.substeps):
            new = self.nonlinear(c).add_(dw, alpha=self.gain)
            if rate:
                new.add_(c, alpha=rate)
            parts, old = (torch.view_as_real(new), torch.view_as_real(c)) if self.real_factors else (new, c)
            parts.addcmul_(old, self.kept).mul_(self.damping)
            c = new
        return c, n + 1

    def field(self, state: tuple[Tensor, int]) -> Tensor:
        return self.grid.inverse(state[0])
