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
    """The terms of an equation, and the degrees of its kernel and noise in its scaling (parabolic or hyperbolic).

    Applying (d_t - L)^-1 adds ``kernel_degree`` to the degree of a tree; the noise has the degree ``noise_degree``. A
    smooth function of u is replaced by its Taylor polynomial at 0.
    """

    kernel_degree: float
    noise_degree: float
    monomials: tuple[Monomial, ...]
