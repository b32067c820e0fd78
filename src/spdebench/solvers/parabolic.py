"""Schemes for first-order equations with a dissipative linear part."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from spdebench.equations.propagators import IMPLICIT_EULER, Exponential, phi_functions
from spdebench.equations.scheme import Scheme
from spdebench.solvers.cubic import CubicStep


class SemiImplicit(Scheme, name="semi_implicit"):
    """u' = (1 - tau L)^-1 (u + tau (F(u) + m_n u) + sigma G(u) dW): linearly implicit (backward) Euler.

    Strong order in tau for additive noise (G = 1): 1/4 for space-time white noise in one dimension (the linear part
    cannot resolve modes with tau lambda > 1), 1 for noise of fixed truncation; for multiplicative noise of fixed
    truncation 1/2 (on such orders see Jentzen and Kloeden 2011, chapter 6). With sub-steps the increment is spread
    evenly over them; G is taken at the start of the noise interval (Ito).
    """

    noise_form = "physical"
    order = 1
    propagator = IMPLICIT_EULER
    counterterms = True
    multiplicative = True
    explicit: Callable[[Tensor, Tensor, int], Tensor]

    def prepare(self) -> None:
        eq, tau = self.equation, self.tau
        self.gain = eq.sigma / self.substeps
        self.damping = self.propagator.impulse(eq.symbol(self.grid, self.device), tau)
        if self.grid.periodic:  # multiplies real and imaginary parts after a transform that is not normalised
            self.damping = torch.stack((self.damping, self.damping), dim=-1) / math.prod(self.grid.points)
        self.drift, self.explicit = eq.drift(self.grid, self.device), self._explicit
        match getattr(self.drift, "polynomial", None):
            case (0.0, linear, 0.0, cube):
                growth = [1 + tau * (linear + self.counterterm_rate(n)) for n in range(eq.noise_steps)]
                self.explicit = CubicStep(growth, tau * cube, self.gain, self.device)

    def _explicit(self, u: Tensor, dw: Tensor, n: int) -> Tensor:
        """u + tau (F(u) + m_n u) + sigma dW/substeps."""
        growth = 1 + self.tau * self.counterterm_rate(n)
        return self.drift(u).mul_(self.tau).add_(u, alpha=growth).add_(dw, alpha=self.gain)

    def _implicit(self, v: Tensor) -> Tensor:
        """(1 - tau L)^-1 v."""
        if not self.grid.periodic:
            return self.grid.inverse(self.grid.transform(v).mul_(self.damping))
        c = torch.fft.rfftn(v, dim=self.grid.axes)
        torch.view_as_real(c).mul_(self.damping)
        return self.grid.inverse(c)

    def start(self, u0: Tensor) -> tuple[Tensor, int]:
        return u0, 0

    def step(self, state: tuple[Tensor, int], dw: Tensor) -> tuple[Tensor, int]:
        u, n = state
        if self.equation.multiplicative:
            dw = self.equation.diffusion(u) * dw
        for _ in range(self.substeps):
            u = self._implicit(self.explicit(u, dw, n))
        return u, n + 1

    def field(self, state: tuple[Tensor, int]) -> Tensor:
        return state[0]


class ETDRK4(Scheme, name="etdrk4"):
    """c_t = L c + F(c) + m_n c + sigma G(u) dW/h on coefficients, the noise constant over the interval h.

    Exponential Runge-Kutta, Cox and Matthews 2002, order 4; constant forcing, and so the linear equation, is solved
    exactly: X' = e^-z X + (1 - e^-z)/z sigma dW, z = lambda h. Against the continuous path the strong order is that of
    replacing the noise by its averages over h: 1/4 for space-time white noise in one dimension, 1 for fixed truncation.
    Multiplicative noise is solved path by path, G(u) dW on a grid twice as fine: as h goes to 0 this is the
    Stratonovich solution.
    """

    noise_form = "spectral"
    order = 4
    propagator = Exponential()
    counterterms = True
    multiplicative = True
    complex_symbol = True

    def prepare(self) -> None:
        self.nonlinear = self.equation.nonlinear(self.grid, self.device)
        symbol, tau = self.equation.symbol(self.grid, self.device), self.tau
        p1, p2, p3 = phi_functions(tau * symbol)
        self.full, self.half = (self.propagator.flow(symbol, t) for t in (tau, tau / 2))
        self.q = tau / 2 * phi_functions(tau / 2 * symbol)[0]
        self.f1 = tau * (p1 - 3 * p2 + 4 * p3)
        self.f2 = tau * 2 * (p2 - 2 * p3)
        self.f3 = tau * (4 * p3 - p2)
        self.fine = self.grid.with_points([2 * n for n in self.grid.points])

    def _on_fine(self, c: Tensor) -> Tensor:
        """The values at the points of the fine grid of a field with coefficients ``c``."""
        return self.fine.inverse(self.grid.resize(c, self.fine))

    def start(self, u0: Tensor) -> tuple[Tensor, int]:
        return self.grid.transform(u0), 0

    def step(self, state: tuple[Tensor, int], dw: Tensor) -> tuple[Tensor, int]:
        c, n = state
        force, rate = dw * (self.equation.sigma / self.interval), self.counterterm_rate(n)
        multiplicative = self.equation.multiplicative
        values = self._on_fine(force) if multiplicative else force

        def slope(at: Tensor) -> Tensor:
            """F(c) + m_n c + sigma G(u) dW/h at c = ``at``."""
            noise = force
            if multiplicative:
                product = self.equation.diffusion(self._on_fine(at)) * values
                noise = self.fine.resize(self.fine.transform(product), self.grid)
            out = self.nonlinear(at).add_(noise)
            return out.add_(at, alpha=rate) if rate else out

        for _ in range(self.substeps):
            n0 = slope(c)
            a = self.half * c + self.q * n0
            n1 = slope(a)
            b = self.half * c + self.q * n1
            n2 = slope(b)
            n3 = slope(self.half * a + self.q * (2 * n2 - n0))
            c = self.full * c + self.f1 * n0 + self.f2 * (n1 + n2) + self.f3 * n3
        return c, n + 1

    def field(self, state: tuple[Tensor, int]) -> Tensor:
        return self.grid.inverse(state[0])
