"""The terms of an equation as products, from which the models on trees build their features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Monomial:
    """One term of F(u) + G(u) xi: coefficient * p * (xi if ``noise``), where ``form`` says what p is.

    product     prod_m (d^m u/dx^m)^powers[m]; all powers 0: p = 1
    flux        d/dx of that product
    transport   v.grad u, v the velocity of the vorticity u; ``powers`` is ignored
    force       the field f = F(0) of the drift; ``powers`` is ignored, ``coefficient`` too unless it is 0 (no force)
    """

    coefficient: float
    powers: tuple[int, ...]
    noise: bool = False
    form: Literal["product", "flux", "transport", "force"] = "product"


@dataclass(frozen=True)
class Rule:
    """Which products occur, and the degrees of trees in the scaling of the equation (parabolic or hyperbolic).

    The inverse of d_t - L adds ``kernel_degree``, the noise has ``noise_degree``. A smooth function of u enters as its
    Taylor polynomial at 0.
    """

    kernel_degree: float
    noise_degree: float
    monomials: tuple[Monomial, ...]
