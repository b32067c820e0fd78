"""Crank-Nicolson for the linear part, explicit Euler for the rest."""

from __future__ import annotations

import torch
from torch import Tensor

from spdebench.solvers.base import Scheme


class CrankNicolson(Scheme, name="crank_nicolson"):
    """c' = (1 - tau L/2)^-1 ((1 + tau L/2) c + tau F(c) + sigma dW) on coefficients.

    Order 2 for the linear part, 1 with F. Strong order 1 for additive noise that is smooth in space. With sub-steps the
    increment is spread evenly over them.
    """

    noise_form = "spectral"
    order = 1

    def prepare(self) -> None:
        self.nonlinear = self.equation.nonlinear(self.grid, self.device)
        z = self.tau / 2 * self.equation.symbol(self.grid, self.device)
        self.kept, self.damping = (1 + z) / self.tau, self.tau / (1 - z)
        self.gain = self.equation.sigma / self.substeps / self.tau
        self.apart = self.grid.periodic and not z.is_complex()  # acts on real and imaginary parts
        if self.apart:
            self.kept, self.damping = self.kept[..., None].contiguous(), self.damping[..., None].contiguous()

    def start(self, u0: Tensor) -> Tensor:
        return self.grid.transform(u0)

    def step(self, state: Tensor, dw: Tensor) -> Tensor:
        for _ in range(self.substeps):
            new = self.nonlinear(state).add_(dw, alpha=self.gain)
            parts, old = (torch.view_as_real(new), torch.view_as_real(state)) if self.apart else (new, state)
            parts.addcmul_(old, self.kept).mul_(self.damping)
            state = new
        return state

    def field(self, state: Tensor) -> Tensor:
        return self.grid.inverse(state)
