"""Distance of the stored solution to finer solutions with the same noise: the discretisation error of a dataset.

d(a, b) = mean over samples of |a - b|/|b|, with norms over x and t_1..t_T; it is stated with its standard error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from spdebench.equations import Equation
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.solvers import Trajectories, simulate, solve


@dataclass(frozen=True)
class Distance:
    """A mean relative L2 distance and its standard error."""

    mean: float
    error: float

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "not finite"
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
    """The equation with noise resolved in time: edition converged, 2^refinement times as many steps and frames."""
    steps = equation.steps << equation.refinement
    substeps = max(1, equation.substeps >> equation.refinement) if equation.edition == "converged" else 1
    return equation.replace(edition="converged", steps=steps, frames=steps, substeps=substeps)


def measure(equation: Equation, seed: int = 0, samples: int = 16, device: str = "cpu") -> Distances:
    """Solve a few samples in both editions, with finer noise and from the stored data, and compare."""
    rows = range(samples)

    def run(eq: Equation, every: int = 1) -> Trajectories:
        return simulate(eq, seed, rows, device=device, out_dtype=torch.float64, every=every)

    with without_aliasing_warning():
        converged_spec = equation.replace(edition="converged")
        converged = run(converged_spec)
        paper = _paper(equation, run)
        own = paper if paper and equation.edition == "paper" else converged
        fine = continuum(equation)
        truth = run(fine, every=fine.frames // equation.frames)
        other = converged_spec.substeps // 2 or 2
        varied = run(converged_spec.replace(substeps=other))
        again = solve(equation, own.u0.float(), own.dw.float())
    return Distances(
        samples=samples,
        editions=relative(paper.u, converged.u) if paper else Distance(math.nan, math.nan),
        continuum=relative(own.u, truth.u),
        storage=relative(again, own.u),
        residual=relative(varied.u, converged.u),
        other_substeps=other,
        refinement=equation.refinement,
    )


def _paper(equation: Equation, run: Callable[[Equation], Trajectories]) -> Trajectories | None:
    """The solution in edition paper; None if the data are of edition converged and the paper's scheme blows up."""
    if equation.edition == "paper":
        return run(equation)
    try:
        return run(equation.replace(edition="paper"))
    except UserError:
        return None


def lost_variance(equation: Equation, dw: Tensor) -> float:
    """1 - Var v / Var w at t_T, for the linear equation with noise constant on stored intervals (v) and white (w).

    The variances are sums over all modes but the constant, which loses nothing. A mode with decay rate l has the
    variances q (1 - e^{-l dt})^2 (1 - e^{-2 l T}) / (l^2 dt (1 - e^{-2 l dt})) and q (1 - e^{-2 l T}) / (2 l); q is the
    strength of the mode's noise, estimated from the increments. Noise that enters as an impulse loses nothing.
    """
    if equation.scheme == "normal_form":
        return 0.0
    grid, dt = equation.grid, equation.horizon / equation.frames
    strength = grid.transform(dw[:, 1:].double()).abs().square().mean((0, 1))
    if grid.periodic:  # the transform of a real field keeps one of k and -k
        strength[..., 1 : (grid.points[-1] + 1) // 2] *= 2
    rate = -equation.symbol(grid).real
    rate = torch.where(rate.abs() * dt < 1e-6, torch.full_like(rate, 1e-6 / dt), rate)
    white = 1 / (2 * rate)
    constant = (1 - torch.exp(-rate * dt)).square() / (rate.square() * dt * (1 - torch.exp(-2 * rate * dt)))
    strength[(0,) * grid.dim] *= not grid.periodic
    weight = strength * (1 - torch.exp(-2 * rate * equation.horizon))
    return float(1 - (weight * constant).sum() / (weight * white).sum())
