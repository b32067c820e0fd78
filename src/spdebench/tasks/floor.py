"""The floor of a problem: the mean error of the conditional mean, the best prediction from the given input.

    floor = E |u - E[u | given]| / |u|,      norms over x and t_1..t_T

A model is given the initial datum and the increments at the frames and points of its task. Where these do not
determine the noise of the solver, ``draws`` solutions with the same given noise (`solvers.conditional`) have the mean
v, and |u - v|^2 is (1 + 1/draws) times the conditional variance in expectation, hence the factor
sqrt(draws/(draws + 1)) of |u - v|. The conditional mean minimises the mean square error; for the mean relative error
another prediction can be slightly better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from spdebench.data.distance import relative
from spdebench.equations import Equation
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.solvers import simulate, solve
from spdebench.solvers.conditional import MOST_ENTRIES, GivenNoise, conditional_solutions

Kind = Literal["exact", "conditional", "solver"]
DRAWS = 8
"""The default number of solutions that are drawn for each sample."""
MOST_TRUTHS = 16
"""The most samples on which a floor is computed by default."""
POINT_STEPS = 3e8
"""Limit on steps times points when a floor is computed: about half a minute on one core."""
AT_FLOOR = 1.2
"""Errors below this multiple of the floor count as equal: they cannot be improved with the given input."""


@dataclass(frozen=True)
class Floor:
    """The floor, its standard error over ``truths`` samples, and how it was found.

    ``exact``: the given noise determines the solution, the floor is rounding. ``conditional``: the unseen noise was
    drawn ``draws`` times. ``solver``: the problem is too large for that; the error of the solver given the noise of the
    task, spread evenly over time and interpolated in space, is an upper bound.
    """

    value: float
    error: float
    kind: Kind
    truths: int
    draws: int = 0

    @property
    def interval(self) -> tuple[float, float]:
        """Two standard errors to both sides."""
        return max(0.0, self.value - 2 * self.error), self.value + 2 * self.error

    def __str__(self) -> str:
        return f"{self.value:.3g} ± {self.error:.1g}"


def floor(
    equation: Equation,
    *,
    every: int = 1,
    stride: int = 1,
    seed: int = 0,
    samples: Sequence[int] | None = None,
    draws: int = DRAWS,
    device: str = "cpu",
) -> Floor:
    """The floor of a task with this sub-sampling, on ``samples`` of a seed (by default as many as are `affordable`)."""
    if draws < 1:
        raise UserError(f"draws must be at least 1, got {draws}")
    given = GivenNoise(equation, every, stride)
    rows = range(affordable(equation, draws)) if samples is None else samples
    if not len(rows):
        raise UserError("the floor is a mean over samples; expected numbers of samples such as range(4), got none")
    if given.complete or not _conditional(given):
        value, error = given_solver_error(given, seed, rows, device)
        return Floor(value, error, "exact" if given.complete else "solver", len(rows))
    u, drawn = conditional_solutions(given, seed, rows, draws, device=device)
    found = relative(drawn.mean(1), u)
    shrink = math.sqrt(draws / (draws + 1))
    return Floor(shrink * found.mean, shrink * found.error, "conditional", len(rows), draws)


def affordable(equation: Equation, draws: int) -> int:
    """How many samples, 2 to 16, can be solved 1 + ``draws`` times in about half a minute."""
    per_solution = math.prod(equation.solving_grid.points) * equation.noise_steps * equation.substeps
    return max(2, min(MOST_TRUTHS, int(POINT_STEPS / (per_solution * (1 + draws)))))


def given_solver_error(
    given: GivenNoise, seed: int, samples: Sequence[int], device: str = "cpu"
) -> tuple[float, float]:
    """Mean error of the solver with the input of a model (float32, as in files), and its standard error."""
    eq = given.equation
    with without_aliasing_warning():
        truth = simulate(eq, seed, samples, device=device)
        again = solve(eq, truth.u0, given.spread(given.increments(truth.dw)))
    found = relative(given.frames(again), given.frames(truth.u).to(torch.float64))
    return found.mean, found.error


def _conditional(given: GivenNoise) -> bool:
    """Whether the conditional law can be computed: if the given points do not resolve the noise, it needs a matrix."""
    coefficients = 2 * given.equation.series().pairs
    return given.resolved or math.prod(given.grid.points) * coefficients <= MOST_ENTRIES
