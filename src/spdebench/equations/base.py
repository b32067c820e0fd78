"""The base class of equations: a spec (all parameters) and the mathematics (symbol, drift, noise, initial data).

    d u = (L u + F(u)) dt + sigma G(u) dW           (order 1 in time)
    d u_t = (L u + F(u)) dt + sigma G(u) dW         (order 2)

An equation file opens with its formula and declares one class; declaring the class registers it. It names one scheme
for each edition. Edition ``paper`` has the grid, step and scheme of the paper's text, or similar ones if the equation
is not in the paper. Edition ``converged`` solves the same equation with the same realisation of the noise, constant in
time on each stored interval (or an impulse, where the equation says so), on a grid that resolves J and with enough
sub-steps that the stored solution no longer changes.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from spdebench import spec
from spdebench.display import html_table
from spdebench.equations.declared_fields import refuse_fields_without_effect
from spdebench.equations.inputs import Inputs
from spdebench.equations.rule import Rule
from spdebench.errors import AliasingWarning, UserError
from spdebench.grids import Boundary, Grid
from spdebench.noise import Basis, Seed, Wiener, make_basis, spectra
from spdebench.registry import Registry

Edition = Literal["paper", "converged"]
Renormalisation = Literal["none", "paper", "exact"]
Map = Callable[[Tensor], Tensor]


def _builtin() -> None:
    import spdebench.equations  # noqa: F401  (its import declares the package's own equations)


MOST_VALUES = 1 << 30
"""The most values of u that a sample may have: 4 GB."""
MOST_PER_POINT = 1 << 10
"""The truncation may be at most this many times the points of an axis; with more modes the noise is white on the
grid."""
MOST_FUNCTIONS = 1 << 22
"""The most basis functions that the noise may have."""
_MOST = {"frames": 1 << 20, "steps": 1 << 24, "substeps": 1 << 20}

EQUATIONS: Registry[Equation] = Registry("equation", "equations", _builtin)


@dataclass(frozen=True, kw_only=True)
class Equation(ABC):
    """Base of all equations. A subclass defines `symbol` and `initial`; its drift is zero unless it defines one.

    Fields left at ``auto`` or 0 are filled in on construction, so that a spec is always complete.
    """

    edition: Edition = "paper"
    boundary: Boundary = "periodic"
    noise: Literal["cylindrical", "q_wiener"] = "cylindrical"
    basis: Literal["auto", "fourier", "sine", "haar"] = "auto"  # fourier if periodic, sine if Dirichlet
    truncation: int = 128  # J
    sigma: float = 1.0
    kappa: float = 0.0  # size of the random part of the initial datum: 0 fixed (xi -> u), 0.1 varying ((u0, xi) -> u)
    horizon: float = 1.0  # T
    points: int = 128  # stored points per axis
    frames: int = 50  # stored intervals
    steps: int = 50  # time steps of edition paper
    solve_points: int = 0  # points per axis of the solving grid
    substeps: int = 0  # sub-steps of each noise interval

    short_names: ClassVar[dict[str, str]] = {"J": "truncation"}  # what users may type for a field
    name: ClassVar[str]
    formula: ClassVar[str] = ""  # if not given, the first line of the docstring
    title: ClassVar[str] = ""  # if not given, the name
    dim: ClassVar[int] = 1
    lower: ClassVar[float] = 0.0
    upper: ClassVar[float] = 1.0
    order: ClassVar[int] = 1  # of the time derivative
    coarsens: ClassVar[bool] = False  # whether edition paper may solve on a finer grid than it stores
    refinement: ClassVar[int] = 8  # how often a card halves the step to approximate noise that is continuous in time
    boundaries: ClassVar[tuple[str, ...]] = ("periodic",)
    bases: ClassVar[tuple[str, ...]] = ("fourier",)
    noises: ClassVar[tuple[str, ...]] = ("cylindrical", "q_wiener")
    schemes: ClassVar[dict[str, str]] = {"paper": "semi_implicit", "converged": "etdrk4"}  # by edition
    remarks: ClassVar[str] = ""  # what differs from the paper's text and why; printed on the card

    def __init_subclass__(cls, name: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name is not None:
            refuse_fields_without_effect(cls, name, decorated=False)
            cls.name = name
            cls.title = cls.title or name
            cls.formula = cls.formula or (cls.__doc__ or name).strip().partition("\n")[0]
            EQUATIONS.add(name, cls)

    def __post_init__(self) -> None:
        refuse_fields_without_effect(type(self), self.name, decorated=True)
        spec.check(self, self.name)
        for key in ("truncation", "points", "frames", "steps"):
            if getattr(self, key) < 1:
                raise UserError(f"{self.name}: {key} must be at least 1, got {getattr(self, key)}")
        self._check_sizes()
        for key, value in self._auto().items():
            if getattr(self, key) in ("auto", 0):
                object.__setattr__(self, key, value)
        self._validate()

    def _check_sizes(self) -> None:
        """Refuse sizes that are too large for any machine, before memory is allocated."""
        for key, most in _MOST.items():
            if getattr(self, key) > most:
                raise UserError(f"{self.name}: {key} must be at most {most}, got {getattr(self, key)}")
        for key in ("points", "solve_points"):
            if getattr(self, key) ** self.dim * (self.frames + 1 if key == "points" else 1) > MOST_VALUES:
                raise UserError(
                    f"{self.name}: {key}={getattr(self, key)} make more than {MOST_VALUES} values per sample"
                )
        if (self.truncation + 1) ** self.dim > MOST_FUNCTIONS:
            raise UserError(f"{self.name}: J={self.truncation} makes more than {MOST_FUNCTIONS} noise functions")
        points = max(self.points, self.solve_points)  # solve_points is 0 if it is still to be chosen
        if self.truncation > MOST_PER_POINT * points:
            raise UserError(
                f"{self.name}: J={self.truncation} is more than {MOST_PER_POINT} times the {points} points of an axis"
            )

    def _auto(self) -> dict[str, Any]:
        """The values that fields left at ``auto`` or 0 get, by field."""
        converged = self.edition == "converged"
        return {
            "basis": "fourier" if self.boundary == "periodic" else "sine",
            "solve_points": self.resolved_points() if converged else self.points,
            "substeps": self.resolved_substeps() if converged else 1,
        }

    def _validate(self) -> None:
        """Refuse values that do not make sense, each alone and together; all fields are filled in by then."""
        for key in ("solve_points", "substeps"):
            if getattr(self, key) < 1:
                raise UserError(f"{self.name}: {key} must be at least 1 (or 0 for automatic), got {getattr(self, key)}")
        for key in ("sigma", "kappa"):
            if getattr(self, key) < 0:
                raise UserError(f"{self.name}: {key} must not be negative, got {getattr(self, key)}")
        if self.horizon <= 0:
            raise UserError(f"{self.name}: horizon must be positive, got {self.horizon}")
        if self.steps % self.frames:
            raise UserError(f"{self.name}: steps={self.steps} is not a multiple of frames={self.frames}")
        for key, allowed in (("boundary", self.boundaries), ("noise", self.noises), ("basis", self.bases)):
            if getattr(self, key) not in allowed:
                choices = ", ".join(allowed)
                raise UserError(f"{self.name}: {key}={getattr(self, key)} is not available; choose from {choices}")
        if self.basis == ("sine" if self.boundary == "periodic" else "fourier"):
            raise UserError(
                f"{self.name}: boundary={self.boundary} cannot be combined with basis={self.basis}; "
                f"use basis={'fourier' if self.boundary == 'periodic' else 'sine'}"
            )
        if self.solve_points < self.points:
            raise UserError(f"{self.name}: solve_points={self.solve_points} is below points={self.points}")
        if self.edition == "paper" and self.solve_points != self.points and not self.coarsens:
            raise UserError(f"{self.name}: edition paper solves on the stored grid; drop solve_points")
        self.series()
        if self.edition == "converged" and self.basis != "haar" and not self.series().resolved_by(self.solving_grid):
            raise UserError(f"{self.name}: solve_points={self.solve_points} do not resolve J={self.truncation}")

    def _repr_html_(self) -> str:
        rows = [{"field": key, "value": value} for key, value in dataclasses.asdict(self).items()]
        return html_table(f"{self.title}: {self.formula}", rows)

    # --- the same equation with other values -------------------------------------------------------------------------
    def replace(self, **changes: Any) -> Equation:
        """This equation with other values of the given fields; automatic values of the others are chosen again."""
        auto = {"basis": "auto", "solve_points": 0, "substeps": 0}
        values = dataclasses.asdict(self)
        for key, value in self._auto().items():
            if values[key] == value:
                values[key] = auto[key]
        values.update(spec.full_names(type(self), changes, self.name))
        return spec.build(type(self), values, self.name)

    def resolved_points(self) -> int:
        """Points of the solving grid of edition converged: twice the stored ones, and at least twice J."""
        wanted = 2 * max(self.points, self.truncation)
        return self.points * -(-wanted // self.points)

    def resolved_substeps(self) -> int:
        """Sub-steps per stored interval of edition converged."""
        return 8

    # --- discretisation -------------------------------------------------------------------------------------------
    @property
    def grid(self) -> Grid:
        """The stored grid."""
        d = self.dim
        return Grid((self.points,) * d, (self.lower,) * d, (self.upper,) * d, self.boundary)

    @property
    def solving_grid(self) -> Grid:
        """The grid on which the equation is solved."""
        return self.grid.with_points(self.solve_points)

    @property
    def noise_steps(self) -> int:
        """The number of noise intervals, each with one increment: ``steps`` in edition paper, else ``frames``."""
        return self.steps if self.edition == "paper" else self.frames

    @property
    def strided(self) -> bool:
        """Whether the stored points are a subset of the solving grid's, instead of the values of its low modes."""
        return False

    @property
    def scheme(self) -> str:
        """The name of the scheme that solves this edition."""
        if self.edition not in self.schemes:
            raise UserError(f"{self.name}: `schemes` names none for edition {self.edition}; add one to the class")
        return self.schemes[self.edition]

    @property
    def times(self) -> Tensor:
        """The times t_0..t_T of the stored frames: (frames + 1,)."""
        return torch.arange(self.frames + 1, dtype=torch.float64) * (self.horizon / self.frames)

    @property
    def task(self) -> Inputs:
        """``xi`` for a fixed initial datum, ``u0+xi`` for a varying one."""
        return "u0+xi" if self.kappa else "xi"

    # --- noise ----------------------------------------------------------------------------------------------------
    @property
    def noise_label(self) -> str:
        """The kind of noise in words."""
        return "Q-Wiener" if self.noise == "q_wiener" else self.noise.replace("_", " ")

    def series(self) -> Basis:
        """The basis functions in which the noise is expanded, up to the truncation J."""
        try:
            return make_basis(self.basis, self.truncation, self.dim)
        except UserError as error:
            raise UserError(f"{self.name}: {error}") from None

    def eigenvalue_roots(self) -> Tensor:
        """sqrt(lambda) of the basis functions, which come in pairs because normal numbers do: (pairs, 2)."""
        index = self.series().index
        if self.noise == "q_wiener":
            return spectra.power_law(index).sqrt()
        if self.noise != "cylindrical":
            raise UserError(
                f"{self.name}: noise={self.noise} needs a method `eigenvalue_roots` on the equation's class"
            )
        return torch.ones(index.shape, dtype=torch.float64)

    def wiener(self, grid: Grid | None = None) -> Wiener:
        """The driving Wiener process on the solving grid, or on ``grid``; warns if the noise aliases there."""
        process = Wiener(self.series(), self.eigenvalue_roots(), grid or self.solving_grid, self.edition == "converged")
        if message := self.aliasing_message():
            warnings.warn(message, AliasingWarning, stacklevel=2)
        return process

    def aliasing_message(self) -> str:
        """One line if the noise of this spec aliases on its grid; empty if it does not."""
        if self.edition == "converged" or not self.series().aliases_on(self.solving_grid):
            return ""
        points = " x ".join(map(str, self.solving_grid.points))
        return (
            f"{self.name}: the noise has {self.series().functions} {self.basis} functions, the grid {points} "
            f"points; edition paper evaluates the series at the points, where it aliases (edition=converged does not)"
        )

    @property
    def multiplicative(self) -> bool:
        """Whether the noise is sigma G(u) dW with the G of `diffusion`, instead of sigma dW."""
        return False

    def diffusion(self, u: Tensor) -> Tensor:
        """G(u) at the grid points, for a `multiplicative` equation: u itself unless the equation defines another G."""
        return u

    def caution(self) -> str:
        """A warning about the noise of this equation in one line, also shown on the card; empty if there is none."""
        if not self.multiplicative or self.order == 2 or self.schemes != Equation.schemes or not self._varies_with_u():
            return ""
        return (
            f"{self.name}: edition paper solves sigma G(u) dW in Ito's sense and edition converged in Stratonovich's, "
            f"so the editions differ by the drift (sigma^2/2) q(x,x) G G' and not only by a discretisation error; "
            f"derive the class from ItoStratonovich and add its correction to the drift (docs/add-an-equation.md)"
        )

    def _varies_with_u(self) -> bool:
        """Whether G depends on u; where it does not, both senses of the noise are the same equation."""
        u = torch.linspace(0.1, 0.7, math.prod(self.solving_grid.points), dtype=torch.float64)
        u = u.reshape(1, *self.solving_grid.points)
        one, other = self.diffusion(u.clone()), self.diffusion(u.square() + 0.1)
        return not (isinstance(one, Tensor) and isinstance(other, Tensor) and torch.equal(one, other))

    # --- mathematics ----------------------------------------------------------------------------------------------
    @property
    def differences(self) -> bool:
        """Whether space is discretised by finite differences (edition paper of most equations) or by modes."""
        return self.edition == "paper"

    @abstractmethod
    def symbol(self, grid: Grid, device: torch.device | str = "cpu") -> Tensor:
        """L(k), the factor by which the linear part multiplies each of the grid's coefficients: (spectrum)."""

    def drift(self, grid: Grid, device: torch.device | str = "cpu") -> Map:
        """The map u -> F(u) on values at the grid points.

        An equation defines this, or `nonlinear`, or both; if it defines neither, F = 0.
        """
        if type(self).nonlinear is Equation.nonlinear:
            return torch.zeros_like
        nonlinear = self.nonlinear(grid, device)
        return lambda u: grid.inverse(nonlinear(grid.transform(u)))

    def nonlinear(self, grid: Grid, device: torch.device | str = "cpu") -> Map:
        """The map u -> F(u) on coefficients, de-aliased (Galerkin); by default F is taken on a grid twice as fine."""
        if type(self).drift is Equation.drift:
            return torch.zeros_like
        fine = grid.with_points([2 * n for n in grid.points])
        drift = self.drift(fine, device)
        if drift is torch.zeros_like:  # such as heat without a correction: no transforms of zeros
            return torch.zeros_like

        def on_coefficients(c: Tensor) -> Tensor:
            return fine.resize(fine.transform(drift(fine.inverse(grid.resize(c, fine)))), grid)

        return on_coefficients

    @abstractmethod
    def initial(self, grid: Grid, seed: Seed, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
        """u_0 at the grid points, (samples, points); its random part is drawn from the same stream as the noise."""

    def velocity(self, grid: Grid, device: torch.device | str = "cpu") -> Tensor:
        """u_t(0) at the grid points, for equations of second order in time."""
        raise UserError(f"{self.name}: an equation of order 2 in time needs a method `velocity`, u_t at t=0")

    def counterterm_rates(self) -> Sequence[float]:
        """m_n for the noise intervals n = 0, 1, ..; renormalisation adds m_n u to the drift. Empty without it."""
        return ()

    def quadratic_dispersion(self) -> tuple[float, float] | None:
        """(a, b) if the equation is u_t = -a u_xxx + b (u^2)_x + noise, whose normal form is known; else None."""
        return None

    @property
    def rule(self) -> Rule | None:
        """The terms of the equation as products of u and the noise; needed only by the models that build trees."""
        return None


def equation(name: str, **values: Any) -> Equation:
    """The equation called ``name`` with the given fields: ``equation("phi41", truncation=32, sigma=1)``.

    J is another name of ``truncation``.
    """
    return spec.build(EQUATIONS[name], values, name)


def as_equation(given: Equation | str) -> Equation:
    """An equation; a name means the equation with its default values."""
    if isinstance(given, str):
        return equation(given)
    if not isinstance(given, Equation):
        raise UserError(f"expected an equation, such as equation('phi41', sigma=1), or its name; got {given!r}")
    return given
