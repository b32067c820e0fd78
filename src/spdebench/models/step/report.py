"""Report of a fit: term, mode, coefficient, 95 % interval, and the coefficient of the solver that generated the data.

If the equation is known, the coefficients follow from the propagator of its scheme. That of linearly implicit Euler is

    u' = (u + tau F(u) + sigma dw) / (1 + tau l),     l(k) the eigenvalues of -L

so c_u = 1/(1 + tau l), c_dw = sigma/(1 + tau l), and the term f u^p of F has the coefficient f tau/(1 + tau l). With
several solver steps between two frames this is exact for u and dw, and the leading term for products.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.models.regularity.schemes import linear_part, propagator, symbol_on
from spdebench.models.step.dictionary import AXES, noise_terms
from spdebench.models.step.fit import Plan, normal_equations
from spdebench.models.step.normal import Normal
from spdebench.models.step.rollout import Map, Paths

if TYPE_CHECKING:
    from spdebench.models.step.model import StepModel
    from spdebench.tasks import Setting

GROUPS, DRAWS, SHOWN = 20, 200, 65
"""Groups of samples and draws of the bootstrap, and the most modes that a report shows."""
TABLE_MODES = (0, 1, 2, 4, 8, 16, 32)
"""The modes that have a row in the tables."""
MOST_ENTRIES = 1 << 24
"""The most values of basis functions that are computed for the exact standard deviations."""


def shown_modes(grid: Grid) -> Tensor:
    """Flat indices of the modes (k, 0, ..) that a report shows: along the last axis, the others at their lowest."""
    lowest = 0 if grid.periodic else 1
    shape = grid.spectral_shape
    k = torch.arange(lowest, min(shape[-1], SHOWN))
    start = 0
    for size in shape[:-1]:
        start = start * size + lowest
    return start * shape[-1] + k


def bootstrap(plan: Plan, one: Map, train: Paths, grid: Grid, most_rows: int) -> Tensor:
    """The 2.5 % and 97.5 % bootstrap quantiles of the first stage's coefficients: (terms, 2, shown modes), flattened.

    Samples are drawn in groups, each with normal equations of its own, so that a draw costs one solution.
    """
    groups = min(GROUPS, len(train))
    dictionary, modes = plan.dictionary(grid, train.u.device), shown_modes(grid).to(train.u.device)
    sums = []
    for g in range(groups):
        part = Paths(train.u[g::groups], train.dw[g::groups])
        normal = normal_equations(plan, Map(one.history), 1, dictionary, part, max(1, most_rows // groups)).normal
        assert normal.gram is not None and normal.right is not None
        sums.append((normal.gram[modes], normal.right[modes]))
    generator = torch.Generator().manual_seed(0)
    draws = []
    for _ in range(DRAWS):
        drawn = Normal()
        chosen = torch.randint(groups, (groups,), generator=generator).tolist()
        drawn.gram, drawn.right = (torch.stack([sums[g][i] for g in chosen]).sum(0) for i in (0, 1))
        draws.append(drawn.solve(1e-13))
    every = torch.stack(draws)
    if train.silent is not None:
        every[:, noise_terms(plan.terms(grid.dim, one.history, 1))] *= ~train.silent.flatten()[modes]
    level = torch.tensor([0.025, 0.975], dtype=torch.float64, device=every.device)
    real = torch.quantile(every.real, level, dim=0)
    out = torch.complex(real, torch.quantile(every.imag, level, dim=0)) if every.is_complex() else real
    return out.transpose(0, 1).flatten()


def generator_values(setting: Setting) -> dict[str, Tensor]:
    """c_j(k) of the solver that generated the data, by the name of the term; empty if no formula is known."""
    equation = setting.equation
    if equation is None or equation.order != 1 or equation.multiplicative:
        return {}
    try:
        drift, noise = linear_part(equation, setting.grid, setting.dt, "generator")
    except UserError:  # the scheme has no formula for its linear part
        return {}
    if not torch.equal(drift.a, noise.a):
        return {}  # initial datum and noise are propagated differently, so u_{n+1} is not a function of u_n and dw
    source, rates = (drift.left + drift.right)[..., 0], equation.counterterm_rates()
    out = {"u": drift.a[..., 0, 0], "dw": equation.sigma / setting.dt * (noise.left + noise.right)[..., 0]}
    for monomial in equation.rule.monomials if equation.rule else ():
        c, powers = monomial.coefficient * source, monomial.powers
        if monomial.form == "transport":
            out |= {"(inv u)_x u_y": c, "(inv u)_y u_x": -c}
        elif monomial.noise or monomial.form != "product":
            continue
        elif powers == (1,):
            out["u"] = out["u"] + c  # explicit in the scheme
        elif powers == (0, 2):
            out["u_x^2"] = c
        elif len(powers) == 1 and powers[0] > 1:
            out[f"u^{powers[0]}"] = c
    if rates:
        del out["u"]  # it depends on time
    return {name: value.expand(setting.grid.spectral_shape) for name, value in out.items()}


def residual_deviations(setting: Setting) -> Tensor | None:
    """Standard deviation of the unseen noise in mode k at the end of one interval, or None if it is not known:

        sigma |B(k)| (lambda_k h (1 + |R|^2 + .. + |R|^{2(g-1)}))^{1/2},     g noise intervals h between frames

    R and B are the factors of a mode and of its noise over one interval of the scheme. This is the residual of a step
    that is exact except for the unseen noise, up to products of that noise with u.
    """
    equation = setting.equation
    if equation is None or equation.order != 1 or equation.multiplicative:
        return None
    unseen, grid = setting.unseen(law=True), setting.grid
    if 2 * unseen.wiener.basis.pairs * math.prod(unseen.wiener.grid.points) > MOST_ENTRIES:
        return None
    try:
        scheme = propagator(equation, "generator")
        interval = equation.horizon / equation.noise_steps
        symbol = symbol_on(grid, equation, equation.symbol)
        decay, gain = (x.abs() ** 2 for x in scheme.response(symbol, interval, equation.substeps))
    except UserError:  # the scheme has no formula for its linear part
        return None
    times = max(1, round(setting.dt / interval))
    total = sum((decay**j for j in range(1, times)), torch.ones_like(decay))
    return equation.sigma * (gain * unseen.power(grid) * interval * total).sqrt()


def residual_table(model: StepModel) -> list[dict[str, Any]]:
    """One row for each mode: standard deviation of the residual, and that of the solver's unseen noise."""
    grid = model.setting.grid
    places = shown_modes(grid)
    numbers = grid.mode_numbers(grid.dim - 1)[places % grid.spectral_shape[-1]]
    found, exact = model.residual().laws[-1].deviation.flatten().cpu(), residual_deviations(model.setting)
    return [
        {
            "k": k,
            "deviation": _number(found[place]),
            "generator": "-" if exact is None else _number(exact.flatten()[place]),
        }
        for place, k in zip(places.tolist(), numbers.tolist(), strict=True)
        if k in TABLE_MODES
    ]


def shifts_in_words(velocity: Sequence[float]) -> list[str]:
    """The shift of a moving frame in one step along each axis, as text: '-0.06 <u> - 0.006 <dw> along x'."""
    pairs = zip(velocity[::2], velocity[1::2], AXES, strict=False)
    return [f"{a:.4g} <u> {'-' if b < 0 else '+'} {abs(b):.4g} <dw> along {axis}" for a, b, axis in pairs]


def table(model: StepModel) -> list[dict[str, Any]]:
    """One row for each term and mode: value, interval, and the generator's value if there is one."""
    grid = model.setting.grid
    places = shown_modes(grid)
    numbers = grid.mode_numbers(grid.dim - 1)[places % grid.spectral_shape[-1]]
    known, intervals = generator_values(model.setting), model.coefficient_intervals()
    rows = []
    for name, weights in model.coefficients().items():
        flat = weights.flatten().cpu()
        for i, (place, k) in enumerate(zip(places.tolist(), numbers.tolist(), strict=True)):
            if k not in TABLE_MODES:
                continue
            low, high = intervals[name][:, i].cpu()
            exact = known[name].flatten()[place] if name in known else None
            rows.append(
                {
                    "term": name,
                    "k": k,
                    "value": _number(flat[place]),
                    "low": _number(low),
                    "high": _number(high),
                    "generator": "-" if exact is None else _number(exact),
                }
            )
    return rows


def _number(value: Tensor) -> str:
    """The number with four digits; its imaginary part only if it is not negligible."""
    number = complex(value.item())
    if abs(number.imag) <= 1e-4 * abs(number):
        return f"{number.real:.4g}"
    return f"{number.real:.4g}{number.imag:+.4g}i"
