"""Distance of the stored solution to finer solutions with the same noise: the discretisation error of a dataset.

d(a, b) = mean over samples of |a - b|/|b|, norms over x and t_1..t_T;  given with its standard error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from spdebench.equations import Equation
from spdebench.errors import without_aliasing_warning
from spdebench.solvers import Trajectories, simulate, solve


@dataclass(frozen=True)
class Distance:
    """A mean relative L2 distance and its standard error."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{100 * self.mean:.3g} % ± {100 * self.error:.1g} %"


@dataclass(frozen=True)
class Distances:
    """Distances on the same ``samples`` paths."""

    samples: int
    editions: Distance  # edition paper to edition converged
    continuum: Distance  # the dataset's edition to the solution with noise resolved in time
    storage: Distance  # the solution from the stored u0 and dw to the stored u
    residual: Distance  # edition converged with half as many sub-steps (2 if it has 1) to itself
    other_substeps: int
    refinement: int  # the noise of `continuum` is resolved at 2^-refinement of the step


def relative(a: Tensor, b: Tensor) -> Distance:
    """d(a, b) of fields N T X.. ."""
    each = (a - b)[:, 1:].flatten(1).norm(dim=1) / b[:, 1:].flatten(1).norm(dim=1)
    return Distance(float(each.mean()), float(each.std()) / math.sqrt(len(each)) if len(each) > 1 else 0.0)


def continuum(equation: Equation) -> Equation:
    """The spec with noise resolved in time: edition converged with 2^refinement times as many steps and frames."""
    steps = equation.steps << equation.refinement
    return equation.replace(edition="converged", steps=steps, frames=steps, substeps=1)


def measure(equation: Equation, seed: int = 0, samples: int = 16, device: str = "cpu") -> Distances:
    """Solve a few samples in both editions, with finer noise and from the stored data, and compare."""
    rows = range(samples)

    def run(eq: Equation, every: int = 1) -> Trajectories:
        return simulate(eq, seed, rows, device=device, out_dtype=torch.float64, every=every)

    with without_aliasing_warning():
        converged_spec = equation.replace(edition="converged")
        paper, converged = run(equation.replace(edition="paper")), run(converged_spec)
        own = paper if equation.edition == "paper" else converged
        fine = continuum(equation)
        truth = run(fine, every=fine.frames // equation.frames)
        other = converged_spec.substeps // 2 or 2
        varied = run(converged_spec.replace(substeps=other))
        again = solve(equation, own.u0.float(), own.dw.float())
    return Distances(
        samples=samples,
        editions=relative(paper.u, converged.u),
        continuum=relative(own.u, truth.u),
        storage=relative(again, own.u),
        residual=relative(varied.u, converged.u),
        other_substeps=other,
        refinement=equation.refinement,
    )
