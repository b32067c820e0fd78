"""Spectral power of data by wave number, and its exact value for the noise and the linear equation.

    S(k) = mean over the modes of shell k of E <f, e>^2,   e orthonormal in L^2

which is V E|c_k|^2 for a periodic box of volume V (so E|c_k|^2 on the unit torus) and V 2^-d E b_k^2 for sines. A shell
contains the modes with the same rounded |kappa| in units of the smallest wave number; in 1-D it is one mode. The
Nyquist mode, of which a grid resolves only the cosine, is omitted.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from spdebench.equations import Equation
from spdebench.errors import without_aliasing_warning
from spdebench.grids import Grid
from spdebench.metrics.spectrum import largest_shell, shell_numbers


def shells(grid: Grid) -> np.ndarray:
    """The shells k that are drawn: 0.. (periodic) or 1.. (Dirichlet) up to the last resolved one."""
    return np.arange(0 if grid.periodic else 1, largest_shell(grid) + 1)


def shell_matrix(grid: Grid) -> Tensor:
    """The matrix (modes, shells) that maps |c|^2 to S."""
    number = torch.round(shell_numbers(grid)).long()
    weight = grid.multiplicity().flatten()
    if not grid.periodic:  # index 0 of an axis is not a sine
        inner = torch.ones(grid.spectral_shape, dtype=torch.bool)
        for axis in range(grid.dim):
            inner.narrow(axis, 0, 1).fill_(False)
        weight = weight * inner.flatten()
    matrix = weight[:, None] * (number[:, None] == torch.as_tensor(shells(grid)))
    scale = grid.volume * (1 if grid.periodic else 0.5**grid.dim)
    return scale * matrix / matrix.sum(0).clamp(min=1e-300)


def power(field: np.ndarray, grid: Grid, matrix: Tensor) -> np.ndarray:
    """S of every field: (..., X..) -> (..., shells), not averaged over samples."""
    c = grid.transform(torch.as_tensor(field))
    return (c.abs().square().flatten(-grid.dim) @ matrix).numpy()


def noise_power(equation: Equation) -> tuple[np.ndarray, float]:
    """S(k) of dW/sqrt(dt) on the stored grid and the mean over x of Var dW/dt, both exact.

    E|c_k|^2/dt is the sum of |c_k|^2 over the basis functions sqrt(lambda_q) phi_q of the noise. These are the
    eigenvalues if the grid resolves the basis, and otherwise sums over the modes that alias onto k.
    """
    with without_aliasing_warning():
        wiener = equation.wiener()
    stored, total = equation.grid, torch.zeros(equation.grid.spectral_shape, dtype=torch.float64)
    for c in wiener.functions():
        total += wiener.grid.resize(c, stored).abs().square().sum(0)
    mean_square = float((total * stored.multiplicity()).sum())
    return (total.flatten() @ shell_matrix(stored)).numpy(), mean_square


def linear_power(equation: Equation, initial: np.ndarray, time: float) -> np.ndarray | None:
    """S(k) at a time of d v = L v dt + sigma dW, v(0) = u(0), in continuous time.

    The smallest scales of u behave like this if the equation is of first order in time with additive noise; None
    otherwise.

        S_k(t) = S_k(0) e^{-2 a t} + sigma^2 lambda_k (1 - e^{-2 a t})/(2 a),   a = -Re L(k)

    For a = |kappa|^2 and white noise this is k^-2; for a = 0 (dispersion) it is sigma^2 lambda_k t.
    """
    if equation.order != 1 or equation.multiplicative:
        return None
    grid = equation.grid
    symbol = equation.replace(edition="converged").symbol(grid)  # of the operator, not of its finite differences
    scale = grid.volume * (1 if grid.periodic else 0.5**grid.dim)
    decay = -(symbol.real if symbol.is_complex() else symbol).flatten().to(torch.float64) @ shell_matrix(grid) / scale
    a = decay.numpy()
    rate = np.where(a * time > 1e-12, -np.expm1(-2 * a * time) / np.where(a > 0, 2 * a, 1), time)
    return initial * np.exp(-2 * a * time) + equation.sigma**2 * noise_power(equation)[0] * rate


def damping_shell(equation: Equation) -> float:
    """The k with |kappa|^2 dt = 1; modes beyond it relax within one noise interval (parabolic equations)."""
    unit = (2 if equation.boundary == "periodic" else 1) * math.pi / max(equation.grid.lengths)
    return math.sqrt(equation.noise_steps / equation.horizon) / unit
