"""What a scheme is: it starts from a field, advances a state over one noise interval, and shows the field.

A scheme asks the equation for its symbol, drift and noise factor and knows nothing else of it. `noise_form` says in
which form it takes an increment: ``spectral`` (coefficients on the solving grid) or ``physical`` (values at its
points).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from spdebench.equations import Equation
from spdebench.grids import Grid
from spdebench.registry import Registry

State = Any


def _builtin() -> None:
    import spdebench.solvers  # noqa: F401  (its import declares the package's own schemes)


SCHEMES: Registry[Scheme] = Registry("scheme", "schemes", _builtin)


class Scheme(ABC):
    """One time-stepping scheme for one equation on one grid. ``interval`` is the length of a noise interval."""

    name: ClassVar[str]
    noise_form: ClassVar[Literal["spectral", "physical"]]
    order: ClassVar[int]  # in time, for smooth problems without noise

    def __init_subclass__(cls, name: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name is not None:
            cls.name = name
            SCHEMES.add(name, cls)

    def __init__(self, equation: Equation, grid: Grid, interval: float, device: torch.device | str = "cpu") -> None:
        self.equation, self.grid, self.interval, self.device = equation, grid, interval, device
        self.substeps = equation.substeps
        self.tau = interval / equation.substeps
        self.masses = equation.masses()
        self.prepare()

    def mass(self, n: int) -> float:
        """m_n of the linear term m_n u that renormalisation adds on noise interval n."""
        return self.masses[n] if self.masses else 0.0

    @abstractmethod
    def prepare(self) -> None:
        """Compute what stays the same over all steps."""

    @abstractmethod
    def start(self, u0: Tensor) -> State:
        """The state at t=0 from the field at the grid points."""

    @abstractmethod
    def step(self, state: State, dw: Tensor) -> State:
        """The state one interval later, dW over the interval given in `noise_form`."""

    @abstractmethod
    def field(self, state: State) -> Tensor:
        """The field at the grid points."""


def make_scheme(equation: Equation, interval: float, device: torch.device | str = "cpu") -> Scheme:
    """The scheme that the equation's edition names."""
    return SCHEMES[equation.scheme](equation, equation.solving_grid, interval, device)
