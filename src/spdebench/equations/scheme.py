"""The base class of schemes: a scheme starts from a field, advances a state over one noise interval, and returns the
field.

A scheme asks the equation for its symbol, drift and noise factor. It declares which equations it can solve, and refuses
all others. The schemes themselves are in `spdebench.solvers`; the base class stands with the equations, because an
equation names its schemes and its counter-terms depend on what they do to a mode (`propagators`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor

from spdebench.equations.methods import check_methods
from spdebench.equations.propagators import Propagator
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.registry import Registry

if TYPE_CHECKING:
    from spdebench.equations.base import Equation

State = Any

SCHEMES: Registry[Scheme] = Registry("scheme", "schemes", lambda: import_module("spdebench.solvers"))


class Scheme(ABC):
    """One time-stepping scheme for one equation on one grid. ``interval`` is the length of a noise interval.

    The class variables say which equations the scheme can solve; `missing` may add further conditions. ``propagator``
    is needed by renormalisation and by models whose kernel is that of the scheme (kernel=generator).
    """

    name: ClassVar[str]
    noise_form: ClassVar[Literal["spectral", "physical"]]  # increments are coefficients, or values at the points
    order: ClassVar[int]  # of accuracy in time, for smooth problems without noise
    propagator: ClassVar[Propagator | None] = None
    time_derivatives: ClassVar[int] = 1  # 1: u_t = .., 2: u_tt = ..
    counterterms: ClassVar[bool] = False  # whether the linear term m_n u of renormalisation is in the step
    multiplicative: ClassVar[bool] = False  # whether sigma G(u) dW is supported
    complex_symbol: ClassVar[bool] = False  # whether L may be complex, as that of u_x or u_xxx is
    dims: ClassVar[tuple[int, ...]] = (1, 2, 3)
    boundaries: ClassVar[tuple[str, ...]] = ("periodic", "dirichlet")

    def __init_subclass__(cls, name: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name is not None:
            cls.name = name
            SCHEMES.add(name, cls)

    def __init__(self, equation: Equation, grid: Grid, interval: float, device: torch.device | str = "cpu") -> None:
        if lacking := self.missing(equation, grid):
            raise UserError(_refusal(type(self), equation, grid, lacking))
        self.equation, self.grid, self.interval, self.device = equation, grid, interval, device
        self.substeps = equation.substeps
        self.tau = interval / equation.substeps
        self.counterterm_rates = equation.counterterm_rates()
        self.prepare()

    @classmethod
    def missing(cls, equation: Equation, grid: Grid) -> list[str]:
        """The features that the equation needs and the scheme lacks, in words; empty if the scheme can solve it."""
        symbol = equation.symbol(grid)
        checks = {
            f"{'second' if equation.order == 2 else 'first'} order in time": equation.order == cls.time_derivatives,
            "counter-terms": cls.counterterms or not equation.counterterm_rates(),
            "multiplicative noise": cls.multiplicative or not equation.multiplicative,
            f"{equation.dim} dimensions": equation.dim in cls.dims,
            f"boundary={grid.boundary}": grid.boundary in cls.boundaries,
            "a complex symbol": cls.complex_symbol or not symbol.is_complex(),
            "growing modes (Re L > 0: move a bounded part of L into the drift)": bool(
                symbol.real.max() <= 1e-9 * symbol.abs().max()
            ),
        }
        return [need for need, served in checks.items() if not served]

    def counterterm_rate(self, n: int) -> float:
        """m_n of the linear term m_n u that renormalisation adds to the drift on noise interval n."""
        return self.counterterm_rates[n] if self.counterterm_rates else 0.0

    @abstractmethod
    def prepare(self) -> None:
        """Compute what stays the same over all steps."""

    @abstractmethod
    def start(self, u0: Tensor) -> State:
        """The state at t=0 from the field at the grid points."""

    @abstractmethod
    def step(self, state: State, dw: Tensor) -> State:
        """The state one noise interval later; ``dw`` is the increment of the noise over it, as `noise_form` says."""

    @abstractmethod
    def field(self, state: State) -> Tensor:
        """The field at the grid points."""


def _refusal(scheme: type[Scheme], equation: Equation, grid: Grid, lacking: list[str]) -> str:
    """The message for an equation that the scheme cannot solve; names the schemes that can."""
    able = ", ".join(name for name in SCHEMES if not SCHEMES[name].missing(equation, grid)) or "none"
    return (
        f"{equation.name}: the scheme '{scheme.name}' does not support {' and '.join(lacking)}; schemes that do: {able}"
    )


def make_scheme(equation: Equation, interval: float, device: torch.device | str = "cpu") -> Scheme:
    """The scheme that the equation names for its edition, for noise intervals of length ``interval``."""
    scheme = SCHEMES[equation.scheme]
    check_methods(equation, equation.solving_grid, device)
    return scheme(equation, equation.solving_grid, interval, device)


def propagator_of(equation: Equation, purpose: str, instead: str) -> Propagator:
    """The propagator of the equation's scheme; without one an error names the ``purpose`` and what to use instead."""
    propagator = SCHEMES[equation.scheme].propagator
    if propagator is None:
        raise UserError(
            f"{equation.name}: {purpose} needs the propagator of the scheme '{equation.scheme}', which declares none; "
            f"set `propagator` on the scheme's class or use {instead}"
        )
    return propagator
