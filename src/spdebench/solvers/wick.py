"""The scheme of the paper's Algorithm 2 for equations whose cube needs renormalisation."""

from __future__ import annotations

import torch
from torch import Tensor

from spdebench.equations.propagators import CRANK_NICOLSON, EXPLICIT_EULER, WickSplitting
from spdebench.equations.scheme import Scheme

State = tuple[Tensor, Tensor, Tensor, int]
"""X and v as coefficients, u = X + v at the points, and the number of the interval."""


class Wick(Scheme, name="wick"):
    """u = X + v:  X' = ((1 - l tau/2) X + sigma dW)/(1 + l tau/2) mode by mode,  v' = v + tau (A v + F(u) + m_n u).

    X, the linear solution from 0, is advanced by Crank-Nicolson with the eigenvalues l of -A, A the difference
    Laplacian; v by explicit Euler, from v_0 = u_0. For F(u) = -u^3 and m_n = 3 a_n the last bracket is A v -
    (v^3 + 3 v^2 X + 3 v (X^2 - a_n) + X^3 - 3 a_n X), the paper's Wick powers collected: -(X+v)^3 + 3 a_n (X+v). The
    stationary variance 1/2l of X is exact for every step. The scheme is stable for tau l < 2 and has the strong order 1
    in tau for noise of fixed truncation. With sub-steps the increment is spread evenly over them.
    """

    noise_form = "spectral"
    order = 1
    propagator = WickSplitting()
    counterterms = True
    boundaries = ("periodic",)

    def prepare(self) -> None:
        self.drift = self.equation.drift(self.grid, self.device)
        symbol, tau = self.equation.symbol(self.grid, self.device), self.tau
        symbol = torch.stack((symbol, symbol), dim=-1)  # multiplies real and imaginary parts
        self.growth = EXPLICIT_EULER.numerator(symbol, tau)
        denominator = CRANK_NICOLSON.denominator(symbol, tau)
        self.decay = CRANK_NICOLSON.numerator(symbol, tau) / denominator
        self.gain = self.equation.sigma / self.substeps / denominator

    def start(self, u0: Tensor) -> State:
        return self.grid.transform(torch.zeros_like(u0)), self.grid.transform(u0), u0, 0

    def step(self, state: State, dw: Tensor) -> State:
        x, v, u, n = state
        rough, smooth, noise = (torch.view_as_real(c) for c in (x, v, dw))
        for _ in range(self.substeps):
            slope = self.grid.transform(self.drift(u).add_(u, alpha=self.counterterm_rate(n)))
            smooth.mul_(self.growth).add_(torch.view_as_real(slope), alpha=self.tau)
            rough.mul_(self.decay).addcmul_(noise, self.gain)
            u = self.grid.inverse(x + v)
        return x, v, u, n + 1

    def field(self, state: State) -> Tensor:
        return state[2]
