"""Solutions given part of the noise: the part that is not given is drawn from its conditional law.

A model sees the increments W(t_k) - W(t_{k-1}) summed over the intervals of its frames, at some points or in some
modes. Let z_n be the coefficients of the noise on the n-th of g intervals of the solver, Z = z_1 + .. + z_g their sum,
S = A Z what is given, and C the covariance of Z. With z'_n drawn from the law of the noise and Z' their sum

    z_n = z'_n + C A^T (A C A^T)^+ (S - A Z')/g                                                       (Matheron)

has the law of z_n given S: this draws the modes that the stored points do not resolve and a Brownian bridge within each
interval. E[u | given] is the best prediction: no model has a smaller mean square error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from spdebench.equations import Equation
from spdebench.equations.scheme import Scheme, make_scheme
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.grids import Grid
from spdebench.solvers.loop import Trajectories, advance, between, check_finite, simulate, to_stored, together

DRAWS_FROM = 1 << 40
"""Draws are taken from the random stream of samples with numbers from here on; samples of datasets have smaller
numbers."""
MOST_ENTRIES = 1 << 26
"""The most entries that the matrix A may have: 512 MiB."""


@dataclass(frozen=True)
class GivenNoise:
    """The part of the noise of an equation that is input of a model: every k-th stored frame (increments summed) and
    point."""

    equation: Equation
    every: int = 1
    stride: int = 1

    def __post_init__(self) -> None:
        eq = self.equation
        if self.every < 1 or eq.frames % self.every:
            raise UserError(f"every must divide the {eq.frames} intervals of {eq.name}, got {self.every}")
        if self.stride < 1 or eq.points % self.stride:
            raise UserError(f"stride must divide the {eq.points} points of {eq.name}, got {self.stride}")

    @property
    def grid(self) -> Grid:
        """The grid of the given increments."""
        stored = self.equation.grid
        return stored.with_points([n // self.stride for n in stored.points])

    @property
    def group(self) -> int:
        """g: intervals of the solver's noise in one given interval."""
        return self.equation.noise_steps // self.equation.frames * self.every

    @property
    def resolved(self) -> bool:
        """Whether the given points determine the noise at all points of the solver."""
        eq = self.equation
        if self.grid.points == eq.solving_grid.points:
            return True
        return eq.basis != "haar" and eq.series().resolved_by(self.grid)

    @property
    def complete(self) -> bool:
        """Whether the input determines the solver's noise completely."""
        return self.group == 1 and self.resolved

    def thin(self, values: Tensor) -> Tensor:
        """The values at every ``stride``-th point of fields on the stored grid."""
        for axis in self.grid.axes:
            index = torch.arange(0, values.shape[axis], self.stride, device=values.device)
            values = values if self.stride == 1 else values.index_select(axis, index)
        return values

    def increments(self, dw: Tensor) -> Tensor:
        """The given increments (N, intervals, X..), computed from stored ones (N T X.., dw[:,0] = 0)."""
        return self.thin(dw[:, 1:].unflatten(1, (-1, self.every)).sum(2))

    def spread(self, increments: Tensor) -> Tensor:
        """Stored increments (N T X..) with these sums: spread evenly over time, interpolated between the points."""
        even = between(self.grid, self.equation.grid, increments / self.every).repeat_interleave(self.every, dim=1)
        return torch.cat((torch.zeros_like(even[:, :1]), even), dim=1)

    def frames(self, u: Tensor) -> Tensor:
        """The given frames of a stored solution (N T X..)."""
        return self.thin(u[:, :: self.every])


def conditional_solutions(
    given: GivenNoise, seed: int, samples: Sequence[int], draws: int, *, device: torch.device | str = "cpu"
) -> tuple[Tensor, Tensor]:
    """(u, v): the solutions of these samples of a seed, and ``draws`` solutions each with the same given noise.

    u (N T X..) and v (N draws T X..) are at the given frames and points, in float64. The initial datum is known.
    """
    eq = given.equation
    with without_aliasing_warning():
        truth = simulate(eq, seed, samples, device=device, out_dtype=torch.float64)
        solver = _ConditionalNoise(given, device)
    sums = given.increments(truth.dw)
    rows = [(k, sample) for k, sample in enumerate(samples) for _ in range(draws)]
    out = []
    size = together(len(rows), eq.solving_grid, device)
    for first in range(0, len(rows), size):
        batch = rows[first : first + size]
        u0 = eq.initial(eq.solving_grid, seed, [sample for _, sample in batch], device)
        numbers = range(DRAWS_FROM + first, DRAWS_FROM + first + len(batch))
        noise = solver.increments(seed, numbers, sums[[k for k, _ in batch]])
        solved = Trajectories.empty(len(batch), eq.frames, eq.grid, torch.float64, device)
        advance(eq, solver.scheme, u0, noise, solved)
        check_finite(eq, solved.u, [sample for _, sample in batch])
        out.append(given.frames(solved.u).clone())
    return given.frames(truth.u), torch.cat(out).unflatten(0, (len(samples), draws))


class _ConditionalNoise:
    """Draws the increments of the solver, given their sums over intervals at some points."""

    def __init__(self, given: GivenNoise, device: torch.device | str) -> None:
        self.given, self.equation, self.device = given, given.equation, device
        self.grid = self.equation.solving_grid
        self.wiener = self.equation.wiener(self.grid)
        self.scheme: Scheme = make_scheme(self.equation, self.equation.horizon / self.equation.noise_steps, device)
        self.spectral = self.scheme.noise_form == "spectral"
        self.on_grid = self.wiener.spectral if self.spectral else self.wiener.physical

    def increments(self, seed: int, samples: Sequence[int], given_sums: Tensor) -> Iterator[Tensor]:
        """Increments with the sums ``given_sums`` (N, given intervals, X..), one block for each given interval."""
        group, done = self.given.group, 0
        for z in self._blocks(seed, samples):
            block = self.on_grid(z)
            sums = block.unflatten(1, (-1, group)).sum(2)
            wanted = given_sums[:, done : done + sums.shape[1]]
            correction = self._lift(wanted - self._seen(sums)) / group
            done += sums.shape[1]
            yield block + correction.repeat_interleave(group, dim=1)

    def _blocks(self, seed: int, samples: Sequence[int]) -> Iterator[Tensor]:
        """Pairs drawn from the law of the noise, one block for each given interval."""
        eq, group = self.equation, self.given.group
        per_interval = eq.steps // eq.noise_steps
        remainder: Tensor | None = None
        for z in self.wiener.blocks(seed, samples, eq.steps, eq.horizon, group=per_interval, device=self.device):
            z = z if remainder is None else torch.cat((remainder, z), dim=1)
            whole = z.shape[1] // group * group
            remainder = z[:, whole:]
            for start in range(0, whole, group):  # one at a time, since few pairs may become many grid values
                yield z[:, start : start + group]

    def _seen(self, increment: Tensor) -> Tensor:
        """A: the given values of an increment on the solving grid."""
        return self.given.thin(to_stored(increment, self.spectral, self.equation))

    @cached_property
    def _lift(self) -> Callable[[Tensor], Tensor]:
        """C A^T (A C A^T)^+: the map from given values to an increment in the scheme's form."""
        if self.given.resolved:
            form = self.grid.transform if self.spectral else lambda field: field
            return lambda values: form(between(self.given.grid, self.grid, values))
        gain = self._gain()

        def lift(values: Tensor) -> Tensor:
            pairs = values.flatten(2) @ gain
            return self.on_grid(torch.view_as_complex(pairs.unflatten(-1, (-1, 2))))

        return lift

    def _gain(self) -> Tensor:
        """C A^T (A C A^T)^+ for the coefficients of the noise, transposed: (given points, 2 pairs)."""
        roots = self.wiener.roots.to(self.device).to(torch.float64)
        count, values = roots.numel(), math.prod(self.given.grid.points)
        if count * values > MOST_ENTRIES:
            raise UserError(
                f"{self.equation.name}: {values} given values of a noise with {count} coefficients are too many for "
                f"the conditional law; try fewer points or a smaller truncation"
            )
        matrix = torch.empty((count, values), dtype=torch.float64, device=self.device)
        size = max(1, (1 << 22) // math.prod(self.grid.points))
        for first in range(0, count, size):
            last = min(count, first + size)
            unit = torch.zeros((last - first, count), dtype=torch.float64, device=self.device)
            unit[torch.arange(last - first), torch.arange(first, last)] = roots.flatten()[first:last]
            z = torch.view_as_complex(unit.unflatten(-1, (-1, 2)))
            matrix[first:last] = self._seen(self.on_grid(z[:, None])).flatten(1)
        inverse: Tensor = torch.linalg.pinv(matrix.T @ matrix, rtol=1e-13, hermitian=True)
        return inverse @ matrix.T * roots.flatten()
