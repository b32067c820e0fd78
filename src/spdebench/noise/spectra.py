"""Eigenvalues of the covariance operator Q, by the number j of the basis function or by its harmonic k.

cylindrical   lambda = 1
q_wiener      lambda_j = (floor(j/2) + 1)^-(2r+1+eps),   r = 2, eps = 0.001     (1-D; paper, appendix on Q-Wiener)
mollified     lambda_k = phi(k eps)^2,                   eps = 1/J              (KPZ; Hairer 2013, section 2.1)
gaussian      lambda_k = exp(-alpha |k|^2),              alpha = 0.005          (NSE; paper, 2-D Q-Wiener)
              lambda_k = exp(-alpha |2 pi k|^2)          in the authors' code
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor


def power_law(j: Tensor, r: float = 2.0, eps: float = 0.001) -> Tensor:
    """lambda_j = (floor(j/2) + 1)^-(2r+1+eps)."""
    return (torch.div(j, 2, rounding_mode="floor").to(torch.float64) + 1) ** -(2 * r + 1 + eps)


def bump(x: Tensor, radius: float) -> Tensor:
    """phi(x) = exp(1 - 1/(1 - (x/R)^2)) for |x| < R, else 0: smooth, compactly supported, phi(0) = 1."""
    s = (x / radius) ** 2
    inside = s < 1
    return torch.where(inside, torch.exp(1 - 1 / (1 - torch.where(inside, s, 0.0))), torch.zeros_like(s))


@functools.cache
def bump_radius() -> float:
    """R = 1.0169..., for which the integral of phi^2 over the line is 1 (it is proportional to R)."""
    from scipy.integrate import quad  # slow to import, rarely needed
    from scipy.optimize import brentq

    unit = 2 * quad(lambda x: math.exp(2 - 2 / (1 - x * x)), 0, 1, epsabs=1e-13, epsrel=1e-12)[0]
    return float(brentq(lambda r: r * unit - 1, 0.1, 10, xtol=1e-14))


def mollifier(k: Tensor, truncation: int) -> Tensor:
    """phi(k/J), the factor of harmonic k of the mollified noise."""
    return bump(k.to(torch.float64) / truncation, bump_radius())


def gaussian(k: Tensor, alpha: float) -> Tensor:
    """lambda_k = exp(-alpha |k|^2) for vectors k (..., dim): integers (the paper), or 2 pi times these (its code)."""
    return torch.exp(-alpha * k.square().sum(-1))
