"""The scheme of the paper's Algorithm 2 for equations whose cube needs renormalisation."""

from __future__ import annotations

import torch
from torch import Tensor

from spdebench.solvers.base import Scheme


class Wick(Scheme, name="wick"):
    """u = X + v:  X' = ((1 - l tau/2) X + sigma dW)/(1 + l tau/2) mode by mode,  v' = v + tau (A v + F(u) + m_n u).

    X, the linear solution from 0, by Crank-Nicolson with the eigenvalues l of -A, A the difference Laplacian; v by
    explicit Euler, from v_0 = u_0. For F(u) = -u^3 and m_n = 3 a_n the last bracket is A v - (v^3 + 3 v^2 X +
    3 v (X^2 - a_n) + X^3 - 3 a_n X), the paper's Wick powers collected: -(X+v)^3 + 3 a_n (X+v). The stationary variance
    1/2l of X is exact for every step. Stable for tau l < 2; strong order 1 in tau for noise of fixed truncation. With
    sub-steps the increment is spread evenly over them.
    """

    noise_form = "spectral"
    order = 1

    def prepare(self) -> None:
        self.drift = self.equation.drift(self.grid, self.device)
        z = -self.tau / 2 * self.equation.symbol(self.grid, self.device)
        z = torch.stack((z, z), dim=-1)  # acts on real and imaginary parts
        self.decay, self.gain = (1 - z) / (1 + z), self.equation.sigma / self.substeps / (1 + z)
        self.shares = [self.tau / h**2 for h in self.grid.spacing]
        self.centre = 1 - 2 * sum(self.shares)

    def start(self, u0: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
        """X in coefficients, u and v at the points, and the number of the interval."""
        return self.grid.transform(torch.zeros_like(u0)), u0, u0, 0

    def step(self, state: tuple[Tensor, Tensor, Tensor, int], dw: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
        c, u, v, n = state
        parts, strokes = torch.view_as_real(c), torch.view_as_real(dw)
        for _ in range(self.substeps):
            new = self.drift(u).add_(u, alpha=self.mass(n)).mul_(self.tau).add_(v, alpha=self.centre)
            for axis, share in zip(self.grid.axes, self.shares, strict=True):
                _add_neighbours(new, v, axis, share)
            v = new
            parts.mul_(self.decay).addcmul_(strokes, self.gain)
            u = self.grid.inverse(c).add_(v)
        return c, u, v, n + 1

    def field(self, state: tuple[Tensor, Tensor, Tensor, int]) -> Tensor:
        return state[1]


def _add_neighbours(out: Tensor, v: Tensor, axis: int, factor: float) -> None:
    """out_j += factor (v_{j-1} + v_{j+1}) along one periodic axis."""
    last = v.shape[axis] - 1
    out.narrow(axis, 0, last).add_(v.narrow(axis, 1, last), alpha=factor)
    out.narrow(axis, 1, last).add_(v.narrow(axis, 0, last), alpha=factor)
    out.narrow(axis, last, 1).add_(v.narrow(axis, 0, 1), alpha=factor)
    out.narrow(axis, 0, 1).add_(v.narrow(axis, last, 1), alpha=factor)
