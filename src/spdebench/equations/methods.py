"""Whether the methods of an equation of a user's own return what the schemes need, told in one line.

symbol(grid, device): L(k) for each coefficient      drift(grid, device): the map u -> F(u)
diffusion(u): G(u) at the points                     initial(grid, seed, samples, device): u_0 at the points
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from spdebench.errors import UserError
from spdebench.grids import Grid

if TYPE_CHECKING:
    from spdebench.equations.base import Equation

SAMPLES = range(2)
"""The samples that the methods are tried with."""


def check_methods(equation: Equation, grid: Grid, device: torch.device | str = "cpu") -> None:
    """Try the methods of an equation that is not of this package; raise `UserError` if the schemes cannot use one."""
    if type(equation).__module__.startswith("spdebench."):
        return
    _check_tensor(equation, "symbol", equation.symbol(grid, device), grid.spectral_shape)
    batch = (len(SAMPLES), *grid.points)
    u = equation.initial(grid, 0, SAMPLES, device)
    _check_tensor(equation, "initial", u, batch)
    if u.dtype != torch.float64:
        raise UserError(
            f"{_method(equation, 'initial')} must return float64, in which equations are solved; got {u.dtype}: make "
            f"its tensors from grid.coordinates(0, device), or with dtype=torch.float64"
        )
    c = grid.transform(u)
    for name, values in (("drift", u), ("nonlinear", c)):
        if _defined(equation, name):
            found = getattr(equation, name)(grid, device)
            if not callable(found):
                raise UserError(
                    f"{_method(equation, name)} must return a function of u, such as lambda u: -u**3; got "
                    f"{_in_words(found)}"
                )
            _check_tensor(equation, name, found(values.clone()), tuple(values.shape), "the function that it returns")
    if equation.multiplicative:
        g = equation.diffusion(u.clone())
        if not (isinstance(g, Tensor) and g.ndim and _expands(tuple(g.shape), batch)):  # such as G(x), for all samples
            _check_tensor(equation, "diffusion", g, batch)


def _defined(equation: Equation, name: str) -> bool:
    """Whether the class of an equation, or a class above it other than `Equation`, defines a method."""
    from spdebench.equations.base import Equation

    return getattr(type(equation), name) is not getattr(Equation, name)


def _expands(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether a tensor of this shape can be expanded to the shape that is wanted."""
    pairs = zip(reversed(shape), reversed(wanted), strict=False)
    return len(shape) <= len(wanted) and all(n in (1, m) for n, m in pairs)


def _check_tensor(equation: Equation, name: str, found: Any, shape: tuple[int, ...], what: str = "it") -> None:
    """Refuse a value that is no tensor of this shape."""
    if not isinstance(found, Tensor) or tuple(found.shape) != shape:
        raise UserError(f"{_method(equation, name)}: {what} must return a tensor {shape}; got {_in_words(found)}")


def _in_words(found: Any) -> str:
    """A value in words: its shape if it has one, else its type."""
    kind = type(found).__name__
    return f"a {kind} of shape {tuple(found.shape)}" if hasattr(found, "shape") else f"a {kind}"


def _method(equation: Equation, name: str) -> str:
    return f"equation '{equation.name}': {type(equation).__name__}.{name}"
