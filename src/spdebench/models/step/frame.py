"""A frame that moves with the mean of u, for equations in which that mean carries the whole field along.

    s_n = a <u_n> + b <dw_{n+1}>,     F[u_{n+1}](k) = exp(-i kappa s_n) sum_j c_j(k) F[phi_j(u_n, dw_{n+1})](k)

<.> is the mean over the box and kappa = 2 pi k/L. In KdV, with the transport 6 u u_x, the mean m turns mode k by
6 kappa m dt within one interval dt. Beyond a radian no polynomial of low degree in u represents such a phase, but a
shift does. The velocities a and b, one of each for every axis, are fitted too: in the regression

    F[u_{n+1}] = c_0 F[u_n] + c_1 F[dw_{n+1}] + c_2 + c_3 <u_n> F[u_n] + c_4 <dw_{n+1}> F[u_n]

a shift has c_3 = -i kappa a c_0 and c_4 = -i kappa b c_0. The target is moved back by the shift that is found, and the
regression is repeated. In a moving frame the products are those of u without its mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from spdebench.grids import Grid
from spdebench.models.step.normal import Normal

ROUNDS = 4
"""The most regressions that are made to find the velocities."""
WORTH = 0.5
"""A moving frame is tried if it multiplies the error of one linear step by at most this factor."""


@dataclass(frozen=True)
class Frame:
    """The shift of every step on a periodic grid; ``velocity`` (dim, 2) holds a and b for each axis."""

    grid: Grid
    velocity: Tensor

    def shift(self, u: Tensor, dw: Tensor) -> Tensor:
        """s_n (B, dim) from the coefficients of u_n and dw_{n+1}."""
        return torch.stack([_mean(u), _mean(dw)], 1) @ self.velocity.T

    def move(self, c: Tensor, shift: Tensor) -> Tensor:
        """Coefficients (B, modes..) of a field that is moved by ``shift`` (B, dim)."""
        for axis in range(self.grid.dim):
            distance = shift[:, axis].reshape(-1, *(1,) * self.grid.dim)
            c = c * torch.exp(-distance * self.grid.derivative(axis, device=c.device))
        return c

    def aligned(self, fields: dict[str, Tensor]) -> dict[str, Tensor]:
        """The fields u, u1, .., w, w1, .. with those of earlier steps moved along by the shifts since then."""
        out, total, lag = dict(fields), torch.zeros_like(self.shift(fields["u"], fields["w"])), 1
        while f"u{lag}" in fields:
            total = total + self.shift(fields[f"u{lag}"], fields[f"w{lag}"])
            out |= {name: self.move(fields[name], total) for name in (f"u{lag}", f"w{lag}")}
            lag += 1
        return out


def fit_velocity(grid: Grid, u: Tensor, dw: Tensor, target: Tensor) -> tuple[float, ...]:
    """a, b of each axis from coefficients (B, modes..) of u_n, dw_{n+1} and u_{n+1}; () if a shift explains little.

    Regressions are repeated as long as each lowers the error of one linear step by a tenth.
    """
    best = Frame(grid, torch.zeros(grid.dim, 2, dtype=torch.float64, device=u.device))
    linear = torch.stack([u, dw, torch.ones_like(u)])
    at_rest = error = _residual_rms(grid, linear, target)
    for _ in range(ROUNDS):
        back = best.move(target, -best.shift(u, dw))
        found = Frame(grid, best.velocity + _correction(grid, linear, back))
        left = _residual_rms(grid, linear, found.move(target, -found.shift(u, dw)))
        if left < error:
            best = found
        if not left < 0.9 * error:
            break
        error = left
    return tuple(best.velocity.flatten().tolist()) if error < WORTH * at_rest else ()


def _residual_rms(grid: Grid, columns: Tensor, target: Tensor) -> float:
    """Root mean square over the box of the residual of a regression on these columns."""
    left = target - (_coefficients(columns, target)[:, None] * columns).sum(0)
    return float((grid.multiplicity(target.device) * left.abs().square().mean(0)).sum().sqrt())


def _correction(grid: Grid, linear: Tensor, target: Tensor) -> Tensor:
    """The change of the velocities (dim, 2) by a regression with <u> u and <dw> u; modes weighted by their power."""
    u, dw = linear[0], linear[1]
    shape = (-1, *(1,) * grid.dim)
    means = torch.stack([m.reshape(shape) * u for m in (_mean(u), _mean(dw))])
    c = _coefficients(torch.cat([linear, means]), target)
    power = grid.multiplicity(u.device) * u.abs().square().mean(0)
    kappa = torch.stack([grid.derivative(a, device=u.device).imag.expand(grid.spectral_shape) for a in range(grid.dim)])
    slope = -(c[0].conj() * c[3:]).imag * power  # kappa a |c_0|^2 power, kappa b |c_0|^2 power
    weight = c[0].abs().square() * power
    matrix = torch.einsum("i...,j...,...->ij", kappa, kappa, weight)
    found: Tensor = torch.linalg.pinv(matrix, hermitian=True) @ torch.einsum("i...,m...->im", kappa, slope)
    return found


def _coefficients(columns: Tensor, target: Tensor) -> Tensor:
    """Least squares mode by mode: (F, modes..) for columns (F, B, modes..)."""
    normal = Normal()
    normal.add(columns, target)
    return normal.solve(1e-12).reshape(len(columns), *target.shape[1:])


def _mean(c: Tensor) -> Tensor:
    """The mean over the box (B,) of fields with these coefficients."""
    return c.flatten(1)[:, 0].real
