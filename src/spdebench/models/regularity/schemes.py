"""x_n = A x_{n-1} + l p_{n-1} + r p_n: the linear part of an equation from frame to frame, mode by mode.

``generator`` takes A, l and r from the propagator of the scheme that generated the data, so that an explicit drift is
evaluated at frame n-1 only. If frames are several steps apart, these steps are composed, with the noise spread evenly
and the source linear between the frames, since the frames contain no more. ``exact`` is the semigroup of the continuous
linear part, with the source linear and the noise constant between frames.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

from torch import Tensor

from spdebench.equations import Equation
from spdebench.equations.propagators import Propagator, Step, exact_flow
from spdebench.equations.scheme import propagator_of
from spdebench.errors import UserError
from spdebench.grids import Grid

Kind = Literal["generator", "exact"]

SAME = 1e-5
"""Differences of two linear parts relative to the largest entry, up to which they are the same; sub-steps round."""


def symbol_on(grid: Grid, equation: Equation, make: Callable[[Grid], Tensor]) -> Tensor:
    """The symbol ``make(grid)``; if the data come from finite differences on a finer grid, that grid's symbol."""
    source = equation.solving_grid
    finer = all(m >= n for m, n in zip(source.points, grid.points, strict=True)) and source.points != grid.points
    if not (equation.differences and finer):
        return make(grid).expand(grid.spectral_shape)
    values = make(source).expand(source.spectral_shape)
    for axis, points in enumerate(source.points):
        values = values.index_select(axis, grid.mode_numbers(axis) % points)
    return values


def propagator(equation: Equation, kind: Kind) -> Propagator:
    """The propagator of the equation's scheme, or that of the continuous equation."""
    if kind == "exact":
        return exact_flow(equation.order)
    return propagator_of(equation, "kernel=generator", "kernel=exact")


def linear_part(equation: Equation, grid: Grid, dt: float, kind: Kind) -> tuple[Step, Step]:
    """(drift, noise): the effects of a source and of the rate of the noise over one interval dt between frames."""
    if kind == "exact":
        smooth = equation.replace(edition="converged", solve_points=0, substeps=0)  # its symbol is the continuous one
        symbol = smooth.symbol(grid)
    else:
        symbol = symbol_on(grid, equation, equation.symbol)
    steps = max(1, round(dt * equation.noise_steps * equation.substeps / equation.horizon))
    return propagator(equation, kind).over(symbol, dt, steps)


def linear_differences(
    first: Equation, other: Equation, grid: Grid, dt: float, kind: Kind
) -> dict[str, tuple[Any, Any]]:
    """The fields in which two equations differ and which alone change the linear part, with both values.

    Empty if the linear parts are the same. If no field changes it alone, the fields are all that differ, or the names
    of the equations.
    """

    def part(equation: Equation) -> list[Tensor]:
        return [each for step in linear_part(equation, grid, dt, kind) for each in dataclasses.astuple(step)]

    if first == other:
        return {}
    own = part(first)

    def same(equation: Equation) -> bool:
        return all(_close(x, y) for x, y in zip(own, part(equation), strict=True))

    if same(other):
        return {}
    if type(first) is not type(other):
        return {"equation": (first.name, other.name)}
    mine, others = dataclasses.asdict(first), dataclasses.asdict(other)
    unlike = {key: (mine[key], others[key]) for key in mine if mine[key] != others[key]}

    def matters(key: str) -> bool:
        try:
            return not same(first.replace(**{key: others[key]}))
        except UserError:  # the value does not go with the other fields
            return False

    return {key: values for key, values in unlike.items() if matters(key)} or unlike


def _close(x: Tensor, y: Tensor) -> bool:
    """Whether two tensors have the same shape and, up to rounding, the same entries."""
    return x.shape == y.shape and bool((x - y).abs().max() <= SAME * max(float(x.abs().max()), float(y.abs().max())))
