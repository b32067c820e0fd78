"""Trees: the terms in the expansion of a solution in its noise and initial datum, generated from an equation's rule.

    xi,   I_c = the initial datum u0 propagated by the linear part,   I[p] = the solution of (d_t - L) y = p from 0,
    p = xi, 1, f = F(0), or a product of earlier trees that divides a monomial of the rule

Divisors are included because expanding a power about known parts also produces lower powers of them: u^3 gives products
of one, two and three trees. A transport term v.grad u always has two factors. Each tree has a degree (in parabolic or
the rule's scaling): that of xi is the noise's, I adds the kernel's, I_c has the kernel's, and a derivative subtracts 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, groupby, product
from typing import Literal

import torch

from spdebench.equations import Equation, Monomial, Rule

DEGREE = 7.5
"""The largest degree in DLR-Net; of the trees of phi41 with height 2 it excludes only I[I_c^3]."""

Kind = Literal["xi", "datum", "integral"]


@dataclass(frozen=True)
class Factor:
    """The derivative d^order of a tree."""

    order: int
    tree: Tree

    def __str__(self) -> str:
        return f"{'d' * self.order} {self.tree}".strip()


@dataclass(frozen=True)
class Tree:
    """xi, I_c (``datum``), or the integral I[factors, times xi if ``noise``]; I[1] and I[f] have no factors."""

    kind: Kind
    degree: float
    factors: tuple[Factor, ...] = ()
    noise: bool = False
    form: Literal["product", "flux", "transport", "force"] = "product"

    @cached_property
    def depth(self) -> int:
        """The number of nested integrals, where I_c counts as one. A tree is computed after those of smaller depth."""
        return int(self.kind != "xi") + max((f.tree.depth for f in self.factors), default=0)

    @cached_property
    def height(self) -> int:
        """The depth, but 1 for I[I_c xi] and similar trees, which replace I[xi] for multiplicative noise."""
        if self.noise and all(f.tree.depth == 1 and not f.tree.noise for f in self.factors):
            return 1
        return int(self.kind != "xi") + max((f.tree.height for f in self.factors), default=0)

    @cached_property
    def has_datum(self) -> bool:
        """Whether the tree depends on u0."""
        return self.kind == "datum" or any(f.tree.has_datum for f in self.factors)

    def __str__(self) -> str:
        return {"xi": "xi", "datum": "I_c"}.get(self.kind) or f"I[{self._inner()}]"

    def _inner(self) -> str:
        """The product under the integral, as text."""
        if self.form == "transport":
            a, b = self.factors
            return f"v({a.tree}).grad {b.tree}"
        words = []
        for text, group in groupby(map(str, self.factors)):
            power = len(list(group))
            whole = f"({text})" if " " in text and power > 1 and text.startswith("d") else text
            words.append(f"{whole}^{power}" if power > 1 else whole)
        inner = " ".join(words)
        if self.form == "flux":
            inner = f"d({inner})"
        return " ".join(filter(None, (inner, "xi" if self.noise else ""))) or ("f" if self.form == "force" else "1")


def linear_rule(equation: Equation) -> Rule:
    """The terms that every equation has: its noise, times u where it is multiplicative, and the force F(0).

    G(u) of multiplicative noise is taken as G(0), if that is not 0, and a multiple of u.
    """
    powers: list[tuple[int, ...]] = [(1,)] if equation.multiplicative else [(0,)]
    if equation.multiplicative and bool(equation.diffusion(torch.zeros(1, dtype=torch.float64)).any()):
        powers.insert(0, (0,))
    noise = (Monomial(equation.sigma, power, noise=True) for power in powers)
    return Rule(2.0, -1.5, (Monomial(1.0, (0,), form="force"), *noise))


def grow(rule: Rule, height: int = 2, degree: float = DEGREE) -> tuple[Tree, ...]:
    """All trees up to a height and a degree: xi, I_c, then the integrals by height, number of factors and degree.

    Monomials with coefficient 0 are ignored.
    """
    terms = sorted((m for m in rule.monomials if m.coefficient), key=lambda m: m.noise)
    known = [Tree("datum", rule.kernel_degree)]
    for level in range(1, height + 1):
        for noise in (False, True):  # at height 1, trees with noise may contain the trees without
            found = [t for m in terms if m.noise == noise for t in _integrals(m, known, rule)]
            new = {t: None for t in found if t.height == level and t.degree <= degree and t not in known}
            known += sorted(new, key=lambda t: (len(t.factors), t.degree, str(t)))
    return (Tree("xi", rule.noise_degree), *known)


def _integrals(term: Monomial, known: Sequence[Tree], rule: Rule) -> Iterator[Tree]:
    """The integrals of all products of known trees that divide one monomial (an empty product: xi, 1 or f)."""
    if term.form == "transport":
        for pair in product(known, known):
            factors = tuple(Factor(0, t) for t in pair)
            yield _integral(factors, term, rule, sum(t.degree for t in pair))
        return
    constant = not any(term.powers)
    for powers in product(*(range(p + 1) for p in term.powers)):
        if not any(powers) and not constant:
            continue  # the empty product counts only for a constant term of the equation
        chosen = (combinations_with_replacement(known, p) for p in powers)
        for trees in product(*chosen):
            factors = tuple(Factor(order, t) for order, group in enumerate(trees) for t in group)
            if any(f.order and str(f.tree) == "I[1]" for f in factors):
                continue  # the derivative of a constant
            factors = tuple(sorted(factors, key=lambda f: (f.tree.degree - f.order, str(f))))
            degree = sum(f.tree.degree - f.order for f in factors) - (term.form == "flux")
            yield _integral(factors, term, rule, degree)


def _integral(factors: tuple[Factor, ...], term: Monomial, rule: Rule, degree: float) -> Tree:
    """The integral of a product whose factors have this degree in all."""
    total = rule.kernel_degree + degree + (rule.noise_degree if term.noise else 0.0)
    form = term.form if factors or term.form == "force" else "product"
    return Tree("integral", total, factors, term.noise, form)
