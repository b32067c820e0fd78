"""The candidate terms of a step: products of fields, of their derivatives and of their inverse derivatives.

    phi = t^a  mean(u)^b  mean(u^2)^c  prod_i D_i f_i,     f_i one of u_n, u_{n-1}, .., dw_{n+1}, dw_n, .., v_1, v_2, ..
    D = 1,   d/dx_i,   or d/dx_i Laplacian^-1

v_s is what stage s of the step predicts for u_{n+1}. The dictionary knows no equation; the dimension is a value. The
term 1 is the intercept of each mode (the transform of the delta), so that any fixed forcing can be represented.

A product is formed at the grid points (`pointwise`, which aliases) or on a grid twice as fine and cut back
(`dealiased`); derivatives are spectral or central differences. On a Dirichlet grid a derivative is a cosine series; it
is evaluated at the points, and the product of point values has a sine transform whatever its parity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import torch
from torch import Tensor

from spdebench.grids import Grid
from spdebench.models.step.frame import Frame

AXES = "xyz"
Factor = tuple[str, str]
"""A field's name and an operator: '' (none), 'x' (derivative along x), 'X' (derivative of the inverse Laplacian)."""


@dataclass(frozen=True)
class Term:
    """One column of the regression."""

    factors: tuple[Factor, ...] = ()
    time: int = 0  # power of t/T
    mean: int = 0  # power of the mean of u over the box
    square: int = 0  # power of the mean of u^2

    @property
    def name(self) -> str:
        """The term as text: u^3, u dw, u_x^2, t u."""
        parts = [f"{symbol}^{power}" if power > 1 else symbol for symbol, power in self._scalars() if power]
        for factor in dict.fromkeys(self.factors):
            count = self.factors.count(factor)
            parts.append(_label(*factor) + (f"^{count}" if count > 1 else ""))
        return " ".join(parts) or "1"

    def _scalars(self) -> tuple[tuple[str, int], ...]:
        return ("t", self.time), ("<u>", self.mean), ("<u^2>", self.square)

    @property
    def linear(self) -> bool:
        """Whether the term has at most one field, so that no product of fields is needed."""
        return len(self.factors) < 2


def _label(field: str, operator: str) -> str:
    """A factor as text: u, dw[-1], u_x, (inv u)_x."""
    head, lag = field[0], int(field[1:] or 0)
    symbol = {"u": "u", "w": "dw", "v": "v"}[head] + (f"[-{lag}]" if lag and head != "v" else str(lag) if lag else "")
    if not operator:
        return symbol
    return f"{symbol}_{operator}" if operator in AXES else f"(inv {symbol})_{operator.lower()}"


def product(*fields: str) -> Term:
    """The product of fields without derivatives: product('u', 'u', 'w') is u^2 dw."""
    return Term(tuple((f, "") for f in fields))


def noise_terms(terms: Sequence[Term]) -> list[int]:
    """The indices of the terms dw_{n+1}, dw_n, .. that are not products."""
    return [i for i, term in enumerate(terms) if len(term.factors) == 1 and term.factors[0][0].startswith("w")]


# --- groups of terms -----------------------------------------------------------------------------------------------
def group(name: str, dim: int) -> list[Term]:
    """The terms of one group, in the field u and the increment w.

    powers     u^2, u^3;  noise  u dw, u^2 dw;  high  u^4, u^5, u^6
    gradients  all products of two first derivatives of u
    inverse    (first derivative of the inverse Laplacian of u) times a first derivative of u or, in 1-D, another such
    means      u mean(u), u mean(u)^2, u mean(u^2)
    time       t u, t^2 u
    """
    u, w, axes = "u", "w", AXES[:dim]
    if name == "powers":
        return [product(u, u), product(u, u, u)]
    if name == "noise":
        return [product(u, w), product(u, u, w)]
    if name == "high":
        return [product(*[u] * p) for p in (4, 5, 6)]
    if name == "gradients":
        return [Term(((u, a), (u, b))) for a, b in combinations_with_replacement(axes, 2)]
    if name == "inverse" and dim == 1:
        return [Term(((u, "X"), (u, "X"))), Term(((u, "X"), (u, "X"), (u, ""))), Term(((u, "X"), (u, ""), (u, "")))]
    if name == "inverse":
        return [Term(((u, a.upper()), (u, b))) for a in axes for b in axes]
    if name == "means":
        one = ((u, ""),)
        return [Term(one, mean=1), Term(one, mean=2), Term(one, square=1)]
    if name == "time":
        return [Term(((u, ""),), time=p) for p in (1, 2)]
    raise KeyError(name)


def mixed(terms: Iterable[Term], old: str, new: str) -> list[Term]:
    """All terms made by replacing one or more factors ``old`` by ``new``: u^3 gives u^2 v, u v^2, v^3."""
    out: dict[tuple[Any, ...], Term] = {}
    for term in terms:
        places = [i for i, (field, _) in enumerate(term.factors) if field == old]
        for mask in range(1, 2 ** len(places)):
            chosen = {p for b, p in enumerate(places) if mask >> b & 1}
            factors = tuple((new, op) if i in chosen else (f, op) for i, (f, op) in enumerate(term.factors))
            made = Term(factors, term.time, term.mean, term.square)
            out.setdefault((tuple(sorted(factors)), made.time, made.mean, made.square), made)
    return list(out.values())


def moved(terms: Iterable[Term], lag: int) -> list[Term]:
    """The terms of an earlier step: u becomes u_{n-lag} and dw_{n+1} becomes dw_{n+1-lag}."""
    return [
        Term(tuple((f"{f[0]}{int(f[1:] or 0) + lag}", op) for f, op in t.factors), t.time, t.mean, t.square)
        for t in terms
    ]


# --- evaluation ----------------------------------------------------------------------------------------------------
class Dictionary:
    """Evaluates terms on a grid, in one form of products and derivatives, in a frame at rest or in a moving one."""

    def __init__(
        self,
        grid: Grid,
        *,
        dealiased: bool,
        difference: bool,
        device: torch.device | str = "cpu",
        frame: Frame | None = None,
    ) -> None:
        self.grid, self.device, self.frame = grid, torch.device(device), frame
        self.work = grid.with_points([2 * n for n in grid.points]) if dealiased else grid
        self.symbols = {op: s.to(self.device) for op, s in _symbols(grid, difference).items()}
        self.weight = grid.multiplicity(self.device)

    def columns(self, terms: Sequence[Term], fields: Mapping[str, Tensor], t: Tensor | float) -> Tensor:
        """Coefficients (F, B, modes) of the terms; fields are coefficients (B, modes), t is t_n/T of each row."""
        values: dict[Factor, Tensor] = {}
        first = next(iter(fields.values()))
        out = first.new_empty((len(terms), *first.shape))
        products: list[tuple[int, Tensor]] = []
        for i, term in enumerate(terms):
            if not term.factors:
                out[i] = 1.0
            elif term.linear:
                (name, operator), *_ = term.factors
                out[i] = fields[name] if not operator else fields[name] * self.symbols[operator]
            else:
                field: Tensor | None = None
                for factor in term.factors:
                    if factor not in values:
                        values[factor] = self._values(fields[factor[0]], factor[1])
                    field = values[factor] if field is None else field * values[factor]
                assert field is not None
                products.append((i, field))
        if products:
            terms_hat = self._back(torch.stack([p for _, p in products]))
            out[torch.tensor([i for i, _ in products], device=out.device)] = terms_hat
        self._scale(out, terms, fields, t)
        return out

    def _scale(self, out: Tensor, terms: Sequence[Term], fields: Mapping[str, Tensor], t: Tensor | float) -> None:
        """Multiply the columns by their powers of t, mean(u) and mean(u^2)."""
        dim = self.grid.dim
        for i, term in enumerate(terms):
            if term.time:
                clock = torch.as_tensor(t, dtype=torch.float64, device=out.device) ** term.time
                out[i] *= clock.reshape(-1, *(1,) * dim)
            if term.mean or term.square:
                u = fields[term.factors[0][0]]
                mean = u.flatten(1)[:, 0].real
                square = (self.weight * (u.real**2 + (u.imag**2 if u.is_complex() else 0))).flatten(1).sum(1)
                out[i] *= (mean**term.mean * square**term.square).reshape(-1, *(1,) * dim)

    def _values(self, coefficients: Tensor, operator: str) -> Tensor:
        """A field, or a derivative of it, at the points of the working grid."""
        c = coefficients if not operator else coefficients * self.symbols[operator]
        if self.frame is not None:  # without the mean
            c = c.clone()
            c.flatten(1)[:, 0] = 0.0
        c = self.grid.resize(c, self.work)
        if self.grid.periodic or not operator:
            return self.work.inverse(c)
        along = AXES.index(operator.lower())
        for axis in range(self.grid.dim):
            c = trigonometric_sums(c, axis - self.grid.dim, cosine=axis == along)
        return c

    def _back(self, values: Tensor) -> Tensor:
        """Coefficients on the grid of values at the points of the working grid."""
        return self.work.resize(self.work.transform(values), self.grid)


def trigonometric_sums(c: Tensor, axis: int, *, cosine: bool) -> Tensor:
    """sum_k c_k cos(pi j k/N), or of sines, j = 0..N-1."""
    n = c.shape[axis]
    half = c * (0.5 + 0j if cosine else -0.5j)
    if cosine:
        half.narrow(axis, 0, 1).mul_(2)
    sums: Tensor = torch.fft.irfft(half, n=2 * n, dim=axis, norm="forward")
    return sums.narrow(axis, 0, n)


def _symbols(grid: Grid, difference: bool) -> dict[str, Tensor]:
    """Symbols of the derivatives and of the derivatives of the inverse Laplacian, on the coefficients."""
    out: dict[str, Tensor] = {}
    square = -grid.laplacian(difference=difference)
    inverse = torch.where(square > 0, -1 / torch.where(square > 0, square, 1.0), 0.0)
    for axis, letter in enumerate(AXES[: grid.dim]):
        if grid.periodic:
            symbol = grid.derivative(axis, difference=difference)
        else:
            kappa, h = grid.wavenumbers()[axis], grid.spacing[axis]
            symbol = torch.sin(kappa * h) / h if difference else kappa
        out[letter] = symbol.expand(grid.spectral_shape)
        out[letter.upper()] = (symbol * inverse).contiguous()
    return out
