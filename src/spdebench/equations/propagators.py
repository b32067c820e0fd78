"""The effect of one step of a scheme on one mode of x_t = L x + p + dW/dt, or of x_tt = L x + p + dW/dt.

    drift and noise   x_n = A x_{n-1} + l p_{n-1} + r p_n       p the source at the two ends of a step
    impulse           x_n = A x_{n-1} + B dW_n                   dW_n the increment of the noise over the step

Each scheme names one `Propagator`. The scheme takes the coefficients of its own step from it, renormalisation the
variance of the linear solution, and the models on trees their kernels.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spdebench.errors import UserError


@dataclass(frozen=True)
class Step:
    """x' = A x + l p + r p' for all modes K: A is (K.., d, d), l and r are (K.., d); d = 1, or 2 with a velocity."""

    a: Tensor
    left: Tensor
    right: Tensor

    @staticmethod
    def scalar(a: Tensor, left: Tensor, right: Tensor | None = None) -> Step:
        """A step without velocity; without ``right`` the source at the end of the step has no effect."""
        right = torch.zeros_like(left) if right is None else right
        return Step(a[..., None, None], left[..., None], right[..., None])

    def repeated(self, times: int) -> Step:
        """The effect of ``times`` such steps, written as one step; the source is linear in time over all of them."""
        if times == 1:
            return self
        total, left, right = torch.eye(self.a.shape[-1], dtype=self.a.dtype), self.left * 0, self.right * 0
        for j in range(times):
            low, high = j / times, (j + 1) / times
            left = _act(self.a, left) + (1 - low) * self.left + (1 - high) * self.right
            right = _act(self.a, right) + low * self.left + high * self.right
            total = self.a @ total
        return Step(total, left, right)

    def powers(self, vector: Tensor, count: int) -> Tensor:
        """The first components of A^j vector for j = 0..count-1: (count, K..)."""
        out = []
        for _ in range(count):
            out.append(vector[..., 0])
            vector = _act(self.a, vector)
        return torch.stack(out)


def _act(a: Tensor, x: Tensor) -> Tensor:
    """A x for every mode: (K.., d)."""
    return (a @ x[..., None])[..., 0]


class Propagator(ABC):
    """The linear part of a scheme, mode by mode: methods map the symbol L and the step tau to coefficients of the step.

    If ``resolves_interval``, the scheme resolves the drift within a noise interval, on which the noise is constant, and
    its linear part is exact for any number of sub-steps. If not, each step evaluates the drift at its start, and the
    increment of an interval is divided evenly among its sub-steps.
    """

    resolves_interval: ClassVar[bool] = False

    @abstractmethod
    def drift(self, symbol: Tensor, tau: float) -> Step:
        """The effect of the state and of a source p over one step."""

    def noise(self, symbol: Tensor, tau: float) -> Step:
        """The effect of the noise over one step, given as the rate dW/tau; by default that of a source."""
        return self.drift(symbol, tau)

    def impulse(self, symbol: Tensor, tau: float) -> Tensor:
        """B: the response at the end of a step to dW = 1 on it, for equations of first order in time."""
        step = self.noise(symbol, tau)
        return (step.left + step.right)[..., 0] / tau

    def over(self, symbol: Tensor, interval: float, steps: int) -> tuple[Step, Step]:
        """`drift` and `noise` over an interval of length ``interval``, which has ``steps`` steps."""
        if self.resolves_interval:
            steps = 1
        return tuple(f(symbol, interval / steps).repeated(steps) for f in (self.drift, self.noise))  # type: ignore[return-value]

    # --- variances of the linear solution, first order in time ----------------------------------------------------
    def response(self, symbol: Tensor, interval: float, steps: int) -> tuple[Tensor, Tensor]:
        """(R, B) of X' = R X + B dW over one noise interval of ``steps`` steps."""
        if self.resolves_interval:
            steps = 1
        tau = interval / steps
        step, gain = self.noise(symbol, tau), self.impulse(symbol, tau)
        if step.a.shape[-1] > 1:
            raise UserError("the variance of the linear solution is known for equations of first order in time only")
        decay = step.a[..., 0, 0]
        return decay**steps, gain * (sum(decay**j for j in range(steps)) / steps)

    def variance(self, symbol: Tensor, weights: Tensor, interval: float, steps: int, count: int) -> Tensor:
        """sum_k w_k E|X_n,k|^2 = sum_k w_k |B_k|^2 h (1 - |R_k|^{2n})/(1 - |R_k|^2), n = 0..count, X_0 = 0, sigma = 1.

        A mode with |R| = 1 contributes w |B|^2 n h.
        """
        n = torch.arange(count + 1, dtype=torch.float64)
        decay, gain = (x.abs() ** 2 for x in self.response(symbol, interval, steps))
        damped = decay != 1
        stationary = weights[damped] * gain[damped] * interval / (1 - decay[damped])
        undamped = (weights[~damped] * gain[~damped]).sum() * interval * n
        return undamped + (1 - decay[damped] ** n[:, None]) @ stationary

    def interval_variance(self, symbol: Tensor, weights: Tensor, interval: float, steps: int, count: int) -> Tensor:
        """E X^2 at the times where the scheme evaluates the drift, here the starts of the intervals n = 0..count-1."""
        return self.variance(symbol, weights, interval, steps, count)[:-1]

    def stationary(self, symbol: Tensor, weights: Tensor, interval: float, steps: int) -> Tensor:
        """w_k E|X_k|^2 of each mode in the stationary state, at the times of `interval_variance`; sigma = 1, L < 0."""
        decay, gain = (x.abs() ** 2 for x in self.response(symbol, interval, steps))
        return weights * gain * interval / (1 - decay)


class Theta(Propagator):
    """(1 - theta tau L) x' = (1 + (1 - theta) tau L) x + tau p + dW: Euler's explicit (0) and implicit (1) methods,
    Crank-Nicolson (1/2)."""

    def __init__(self, theta: float) -> None:
        self.theta = theta

    def numerator(self, symbol: Tensor, tau: float) -> Tensor:
        return 1 + (1 - self.theta) * tau * symbol

    def denominator(self, symbol: Tensor, tau: float) -> Tensor:
        return 1 - self.theta * tau * symbol

    def drift(self, symbol: Tensor, tau: float) -> Step:
        denominator = self.denominator(symbol, tau)
        return Step.scalar(self.numerator(symbol, tau) / denominator, tau / denominator)

    def impulse(self, symbol: Tensor, tau: float) -> Tensor:
        return 1 / self.denominator(symbol, tau)

    def stationary(self, symbol: Tensor, weights: Tensor, interval: float, steps: int) -> Tensor:
        """w h/((1 - h L)^2 - 1) for one implicit Euler step per interval."""
        if self.theta == 1 and steps == 1:
            return weights * interval / (self.denominator(symbol, interval) ** 2 - 1)
        return super().stationary(symbol, weights, interval, steps)


IMPLICIT_EULER, CRANK_NICOLSON, EXPLICIT_EULER = Theta(1.0), Theta(0.5), Theta(0.0)


class WickSplitting(Propagator):
    """u = X + v: Crank-Nicolson for X, which contains the noise, explicit Euler for v, with initial datum and drift."""

    def drift(self, symbol: Tensor, tau: float) -> Step:
        return EXPLICIT_EULER.drift(symbol, tau)

    def noise(self, symbol: Tensor, tau: float) -> Step:
        return CRANK_NICOLSON.noise(symbol, tau)

    def impulse(self, symbol: Tensor, tau: float) -> Tensor:
        return CRANK_NICOLSON.impulse(symbol, tau)


class Exponential(Propagator):
    """x' = e^z x + int_0^tau e^{(tau-s) L} p(s) ds, z = tau L: exact for a source that is linear on the step."""

    resolves_interval = True

    def flow(self, symbol: Tensor, tau: float) -> Tensor:
        """e^z."""
        return torch.exp(tau * symbol)

    def drift(self, symbol: Tensor, tau: float) -> Step:
        one, two, _ = phi_functions(tau * symbol)
        return Step.scalar(self.flow(symbol, tau), tau * (one - two), tau * two)

    def impulse(self, symbol: Tensor, tau: float) -> Tensor:
        """(e^z - 1)/z: the noise is constant on the interval."""
        z = tau * symbol
        nonzero = z != 0
        return torch.where(nonzero, torch.expm1(z) / torch.where(nonzero, z, 1.0), 1.0)

    def interval_variance(self, symbol: Tensor, weights: Tensor, interval: float, steps: int, count: int) -> Tensor:
        """The mean of E X^2 over each interval, X(t_n + s) = e^{-l s} X_n + (1 - e^{-l s})/l dW/h with l = -L:

        sum_k w_k ((1 - e^{-2z})/(2z) E|X_n,k|^2 + 1/(h l^2) (1 - 2(1 - e^-z)/z + (1 - e^{-2z})/(2z))), z = l h; a mode
        with l = 0 contributes w (t_n + h/3).
        """
        h, n, damped = interval, torch.arange(count, dtype=torch.float64), symbol != 0
        w, z = weights[damped], -symbol[damped] * h
        one, two = -torch.expm1(-z) / z, -torch.expm1(-2 * z) / (2 * z)
        before = w * two * one**2 * h / -torch.expm1(-2 * z)
        within = (w * h * (1 - 2 * one + two) / z**2).sum()
        undamped = weights[~damped].sum() * h * (n + 1 / 3)
        return undamped - torch.expm1(-2 * z * n[:, None]) @ before + within

    def stationary(self, symbol: Tensor, weights: Tensor, interval: float, steps: int) -> Tensor:
        """w/(h l^2) (1 - (1 - e^-z)/z), z = l h = -L h: the mean over an interval."""
        z = -symbol * interval
        return weights / (interval * symbol**2) * (1 + torch.expm1(-z) / z)


class Impulsive(Exponential):
    """x' = e^z (x + dW): the noise is an impulse at the start of the interval, followed by the exact flow."""

    def noise(self, symbol: Tensor, tau: float) -> Step:
        flow = self.flow(symbol, tau)
        return Step.scalar(flow, tau * flow)

    def impulse(self, symbol: Tensor, tau: float) -> Tensor:
        return self.flow(symbol, tau)

    def interval_variance(self, symbol: Tensor, weights: Tensor, interval: float, steps: int, count: int) -> Tensor:
        """The mean of E|X|^2 over each interval: sum_k w_k (E|X_n,k|^2 + h) (e^{2 Re z} - 1)/(2 Re z)."""
        carried = weights * super().impulse(2 * symbol.real, interval)
        return self.variance(symbol, carried, interval, steps, count)[:-1] + carried.sum() * interval

    def stationary(self, symbol: Tensor, weights: Tensor, interval: float, steps: int) -> Tensor:
        carried = weights * super().impulse(2 * symbol.real, interval)
        return carried * interval / -torch.expm1(2 * symbol.real * interval)


class Verlet(Propagator):
    """Leapfrog with the velocity at the frames: half a kick, a move, half a kick; the noise kicks at the start."""

    def drift(self, symbol: Tensor, tau: float) -> Step:
        one, zero = torch.ones_like(symbol), torch.zeros_like(symbol)
        half = tau**2 / 2 * symbol
        left = torch.stack((tau**2 / 2 * one, tau / 2 * (1 + half)), -1)
        return Step(self._matrix(symbol, tau), left, torch.stack((zero, tau / 2 * one), -1))

    def noise(self, symbol: Tensor, tau: float) -> Step:
        one, half = torch.ones_like(symbol), tau**2 / 2 * symbol
        kick = tau * torch.stack((tau * one, 1 + half), -1)
        return Step(self._matrix(symbol, tau), kick, 0 * kick)

    @staticmethod
    def _matrix(symbol: Tensor, tau: float) -> Tensor:
        one, half = torch.ones_like(symbol), tau**2 / 2 * symbol
        return _two_by_two(1 + half, tau * one, tau * symbol * (1 + half / 2), 1 + half)


class Rotation(Propagator):
    """x_tt = L x + p, p linear on the step: int sin(w (tau - s))/w p(s) ds and its derivative, w^2 = -L."""

    resolves_interval = True

    @staticmethod
    def coefficients(omega: Tensor, angle: Tensor, tau: float) -> tuple[Tensor, Tensor, Tensor]:
        """cos(w tau), sin(w tau)/w, -w sin(w tau): x' = cos x + sine v, v' = turned x + cos v."""
        return torch.cos(angle), tau * torch.sinc(angle / math.pi), -omega * torch.sin(angle)

    def drift(self, symbol: Tensor, tau: float) -> Step:
        omega = (-symbol).sqrt()
        angle = omega * tau
        cosine, sine, turned = self.coefficients(omega, angle, tau)
        near = angle < 1e-3  # there the Taylor series is exact to rounding
        safe = torch.where(near, torch.ones_like(angle), angle)
        level = tau**2 * torch.where(near, 0.5 - angle**2 / 24, (1 - torch.cos(safe)) / safe**2)
        ramp = tau**2 * torch.where(near, 1 / 6 - angle**2 / 120, (1 - torch.sin(safe) / safe) / safe**2)
        right = torch.stack((ramp, level / tau), -1)
        return Step(_two_by_two(cosine, sine, turned, cosine), torch.stack((level, sine), -1) - right, right)


def _two_by_two(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """The matrices (a, b; c, d): (K.., 2, 2)."""
    return torch.stack((torch.stack((a, b), -1), torch.stack((c, d), -1)), -2)


def exact_flow(order: int) -> Propagator:
    """The propagator of the continuous linear equation of first or second order in time."""
    return Rotation() if order == 2 else Exponential()


def phi_functions(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """phi_1(z) = (e^z - 1)/z,  phi_2(z) = (phi_1(z) - 1)/z,  phi_3(z) = (phi_2(z) - 1/2)/z, to about 1e-14.

    For real or complex z; Taylor's series for |z| < 1, the definition elsewhere.
    """
    small = z.abs() < 1
    near = torch.where(small, z, torch.zeros_like(z))
    far = torch.where(small, torch.ones_like(z), z)
    series = []
    for order in (1, 2, 3):
        total = torch.zeros_like(z)
        for j in range(20, -1, -1):
            total = total * near + 1 / math.factorial(j + order)
        series.append(total)
    p1 = (torch.exp(far) - 1) / far
    p2 = (p1 - 1) / far
    p3 = (p2 - 0.5) / far
    first, second, third = (torch.where(small, s, p) for s, p in zip(series, (p1, p2, p3), strict=True))
    return first, second, third
