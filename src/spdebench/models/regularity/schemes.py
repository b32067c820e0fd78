"""The linear parts of the schemes, mode by mode, over the interval between two frames.

    x_n = A x_{n-1} + l p_{n-1} + r p_n

x is the coefficient of one mode, with its velocity where the equation is of second order; p is the source at the two
ends of the interval. ``generator`` takes A, l and r from the scheme that made the data, so that an explicit drift
enters from frame n-1 alone; where frames are several steps apart the scheme is run over these steps, the noise spread
evenly and the source linear between the frames, which is all that frames tell. ``exact`` is the semigroup of the
continuous linear part, the source linear and the noise constant between frames.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from spdebench.equations import Equation
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.solvers.phi import phi_functions

Kind = Literal["generator", "exact"]


@dataclass(frozen=True)
class Step:
    """x' = A x + l p + r p' for all modes: A (K.., d, d), l and r (K.., d); d = 1, or 2 with a velocity."""

    a: Tensor
    left: Tensor
    right: Tensor

    @staticmethod
    def scalar(a: Tensor, left: Tensor, right: Tensor | None = None) -> Step:
        right = torch.zeros_like(left) if right is None else right
        return Step(a[..., None, None], left[..., None], right[..., None])

    def repeated(self, times: int) -> Step:
        """``times`` of these steps as one, the source linear over the whole."""
        total, left, right = torch.eye(self.a.shape[-1], dtype=self.a.dtype), self.left * 0, self.right * 0
        for j in range(times):
            low, high = j / times, (j + 1) / times
            left = _act(self.a, left) + (1 - low) * self.left + (1 - high) * self.right
            right = _act(self.a, right) + low * self.left + high * self.right
            total = self.a @ total
        return Step(total, left, right)

    def powers(self, vector: Tensor, count: int) -> Tensor:
        """First entries of A^j vector, j = 0..count-1: (count, K..)."""
        out = []
        for _ in range(count):
            out.append(vector[..., 0])
            vector = _act(self.a, vector)
        return torch.stack(out)


def _act(a: Tensor, x: Tensor) -> Tensor:
    return (a @ x[..., None])[..., 0]


@dataclass(frozen=True)
class LinearPart:
    """One interval of a setting: how sources of the drift and the noise (a rate, dW/dt) enter; the datum goes with the
    drift. The two differ where a scheme treats them apart."""

    drift: Step
    noise: Step

    def repeated(self, times: int) -> LinearPart:
        return self if times == 1 else LinearPart(self.drift.repeated(times), self.noise.repeated(times))


# --- the schemes' linear parts, one step tau --------------------------------------------------------------------------
def _semi_implicit(symbol: Tensor, tau: float) -> LinearPart:
    gain = 1 / (1 - tau * symbol)
    step = Step.scalar(gain, tau * gain)
    return LinearPart(step, step)


def _crank_nicolson(symbol: Tensor, tau: float) -> LinearPart:
    z = tau / 2 * symbol
    step = Step.scalar((1 + z) / (1 - z), tau / (1 - z))
    return LinearPart(step, step)


def _wick(symbol: Tensor, tau: float) -> LinearPart:
    drift = Step.scalar(1 + tau * symbol, torch.full_like(symbol, tau))
    return LinearPart(drift, _crank_nicolson(symbol, tau).noise)


def _semigroup(symbol: Tensor, tau: float) -> LinearPart:
    z = tau * symbol
    one, two, _ = phi_functions(z)
    step = Step.scalar(torch.exp(z), tau * (one - two), tau * two)
    return LinearPart(step, step)


def _impulse(symbol: Tensor, tau: float) -> LinearPart:
    """The exact flow, the noise at the start of the interval. Fluxes come integrated (`DispersiveKernel.flux`)."""
    flow = torch.exp(tau * symbol)
    return LinearPart(_semigroup(symbol, tau).drift, Step.scalar(flow, tau * flow))


def _verlet(symbol: Tensor, tau: float) -> LinearPart:
    """Leapfrog with the velocity at the frames: half a kick, a move, half a kick; the noise kicks at the start."""
    one, zero = torch.ones_like(symbol), torch.zeros_like(symbol)
    half = tau**2 / 2 * symbol
    a = torch.stack((1 + half, tau * one, tau * symbol * (1 + half / 2), 1 + half), -1).unflatten(-1, (2, 2))
    left = torch.stack((tau**2 / 2 * one, tau / 2 * (1 + half)), -1)
    right = torch.stack((zero, tau / 2 * one), -1)
    kick = tau * torch.stack((tau * one, 1 + half), -1)
    return LinearPart(Step(a, left, right), Step(a, kick, 0 * kick))


def _rotation(symbol: Tensor, tau: float) -> LinearPart:
    """u_tt = L u + p, p linear over the step: int sin(w (tau - s))/w p(s) ds and its derivative."""
    omega = (-symbol).sqrt()
    angle = omega * tau
    sine = tau * torch.sinc(angle / math.pi)
    near = angle < 1e-3  # series, to rounding
    safe = torch.where(near, torch.ones_like(angle), angle)
    level = tau**2 * torch.where(near, 0.5 - angle**2 / 24, (1 - torch.cos(safe)) / safe**2)
    ramp = tau**2 * torch.where(near, 1 / 6 - angle**2 / 120, (1 - torch.sin(safe) / safe) / safe**2)
    a = torch.stack((torch.cos(angle), sine, -omega * torch.sin(angle), torch.cos(angle)), -1).unflatten(-1, (2, 2))
    right = torch.stack((ramp, level / tau), -1)
    step = Step(a, torch.stack((level, sine), -1) - right, right)
    return LinearPart(step, step)


SCHEMES: dict[str, Callable[[Tensor, float], LinearPart]] = {
    "semi_implicit": _semi_implicit,
    "crank_nicolson": _crank_nicolson,
    "wick": _wick,
    "leapfrog": _verlet,
}
EXACT_SCHEMES: dict[str, Callable[[Tensor, float], LinearPart]] = {
    "etdrk4": _semigroup,
    "trigonometric": _rotation,
    "normal_form": _impulse,
}
"""Schemes whose linear part is exact for noise constant on an interval (an impulse for the last): no sub-steps."""


def symbol_on(grid: Grid, equation: Equation, make: Callable[[Grid], Tensor]) -> Tensor:
    """The symbol ``make`` at the modes of ``grid``; where differences on a finer grid made the data, that of those."""
    source = equation.solving_grid
    finer = all(m >= n for m, n in zip(source.points, grid.points, strict=True)) and source.points != grid.points
    if not (equation.differences and finer):
        return make(grid).expand(grid.spectral_shape)
    values = make(source).expand(source.spectral_shape)
    for axis, points in enumerate(source.points):
        values = values.index_select(axis, grid.mode_numbers(axis) % points)
    return values


def linear_part(equation: Equation, grid: Grid, dt: float, kind: Kind) -> LinearPart:
    """A, l and r of one interval between frames."""
    if kind == "exact":
        smooth = equation.replace(edition="converged", solve_points=0, substeps=0)  # whose symbol is not of differences
        return (_rotation if equation.order == 2 else _semigroup)(smooth.symbol(grid), dt)
    symbol = symbol_on(grid, equation, equation.symbol)
    if equation.scheme in EXACT_SCHEMES:
        return EXACT_SCHEMES[equation.scheme](symbol, dt)
    if equation.scheme not in SCHEMES:
        known = ", ".join(sorted(SCHEMES | EXACT_SCHEMES))
        raise UserError(f"kernel=generator knows the schemes {known}, not '{equation.scheme}'; use kernel=exact")
    steps = max(1, round(dt * equation.noise_steps * equation.substeps / equation.horizon))
    return SCHEMES[equation.scheme](symbol, dt / steps).repeated(steps)
