"""Measures of the difficulty of a problem, computed from a small ensemble (`measure`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from spdebench.data.distance import lost_variance, relative
from spdebench.equations import Equation
from spdebench.errors import UserError
from spdebench.models import MODELS, model
from spdebench.solvers import Trajectories, simulate, solve
from spdebench.tasks import Batch, TaskSpec
from spdebench.tasks.floor import floor

PERTURBATION = 1e-6
"""Size of the perturbation of u0, relative to u0, whose growth is measured."""
PERTURBED = 16
"""The number of samples on which it is measured."""
SMALLEST = 1e-10
"""The smallest growth that float64 resolves."""
REFINED = 4
"""The number of samples that are solved on a finer grid."""


@dataclass(frozen=True)
class Difficulty:
    """Relative L2 errors over t_1..t_T on the last quarter of the samples, and properties of the data.

    floor         error of the best possible prediction from the stored u0 and noise (`tasks.floor`)
    mean          error of the mean of the training part
    linear        error of the regression on the linear equation's solution, exact kernel: the nonlinearity
    trees         error of the regression on trees of height 2, exact kernel; NaN if the equation has no rule
    step          error of the model ``step``: whether the map can be found from data; NaN if it was not fitted
    average       mean of u over samples, points and frames t_1..t_T
    std           standard deviation of u over the same
    chaos         |difference at t_T| / |difference at t_0| for a perturbation of u0 by 1e-6, same noise
    not_finite    fraction of paths that are not finite
    lost          fraction of the linear solution's variance (without its spatial mean) that is lost because the noise
                  is constant on stored intervals
    residual      relative L2 distance of the data to a solution with twice the solving points and sub-steps
    """

    floor: float
    mean: float
    linear: float
    trees: float
    step: float
    average: float
    std: float
    chaos: float
    not_finite: float
    lost: float
    residual: float


def measure(equation: Equation, n: int = 160, seed: int = 0, *, step: bool = False) -> Difficulty:
    """The difficulty of a problem from ``n`` samples; only finite paths are used."""
    finite = finite_samples(equation, seed, range(n))
    share = 1 - len(finite) / n
    if len(finite) < 16:
        nan = math.nan
        return Difficulty(nan, nan, nan, nan, nan, nan, nan, nan, share, nan, nan)
    paths = simulate(equation, seed, finite)
    cut = 3 * len(finite) // 4
    train, test = paths.rows(0, cut), paths.rows(cut, len(finite) - cut)
    u = paths.u[:, 1:].double()
    return Difficulty(
        floor=floor(equation, seed=seed, samples=finite[cut : cut + PERTURBED]).value,
        mean=_error("mean", equation, train, test),
        linear=_error("linear", equation, train, test, kernel="exact"),
        trees=_error("trees", equation, train, test, kernel="exact") if equation.rule else math.nan,
        step=_error("step", equation, train, test) if step else math.nan,
        average=float(u.mean()),
        std=float(u.std()),
        chaos=growth(equation, test.rows(0, min(PERTURBED, len(test.u)))),
        not_finite=share,
        lost=lost_variance(equation, paths.dw),
        residual=refined_distance(equation, seed, finite[:REFINED]),
    )


def finite_samples(equation: Equation, seed: int, samples: Sequence[int]) -> list[int]:
    """The samples whose paths are finite, found by bisection."""
    try:
        simulate(equation, seed, samples)
    except UserError:
        if len(samples) == 1:
            return []
        half = len(samples) // 2
        return [i for part in (samples[:half], samples[half:]) for i in finite_samples(equation, seed, part)]
    return list(samples)


def _error(name: str, equation: Equation, train: Trajectories, test: Trajectories, **config: str) -> float:
    """Relative L2 error of a model without training, fitted on ``train``; NaN if it does not support the data."""
    setting = TaskSpec(inputs=equation.task).setting(equation)
    try:
        fitted = model(name, setting, **config)
    except UserError:
        return math.nan
    features = fitted.prepare(_batch(equation, train))
    if MODELS[name].streams:
        cut = 4 * len(train.u) // 5
        parts = [({k: v[rows] for k, v in features.items()}, train.u[rows]) for rows in (slice(cut), slice(cut, None))]
        fitted.calibrate_stream([parts[0]], [parts[1]])
    else:
        fitted.calibrate(features, train.u)
    return float(relative(fitted.predict(_batch(equation, test)).double(), test.u.double()).mean)


def _batch(equation: Equation, paths: Trajectories) -> Batch:
    return Batch(paths.u0, paths.dw, (equation,), torch.zeros(len(paths.u), dtype=torch.long))


def growth(equation: Equation, paths: Trajectories) -> float:
    """Geometric mean over samples of |v(T) - u(T)| / |v(0) - u(0)|, v from a u0 perturbed in a low mode.

    A growth below `SMALLEST` counts as `SMALLEST`, because float64 does not resolve it.
    """
    grid = equation.grid
    u0, dw = paths.u0.double(), paths.dw.double()
    smooth = torch.ones(grid.points, dtype=torch.float64)
    for axis, x in enumerate(grid.mesh()):
        phase = 2 * math.pi * (x - grid.lower[axis]) / grid.lengths[axis]
        smooth = smooth * torch.sin(phase if grid.periodic else phase / 2)
    scale = u0.flatten(1).square().mean(1).sqrt().clamp_min(1e-3).reshape(-1, *[1] * grid.dim)
    moved = u0 + PERTURBATION * scale * smooth
    both = solve(equation, torch.cat((u0, moved)), torch.cat((dw, dw)))
    difference = (both[len(u0) :] - both[: len(u0)]).flatten(2).norm(dim=2)
    return float((difference[:, -1] / difference[:, 0]).clamp_min(SMALLEST).log().mean().exp())


def refined_distance(equation: Equation, seed: int, samples: Sequence[int]) -> float:
    """Distance of a solution to one with twice the solving points and sub-steps and the same noise."""
    finer = equation.replace(solve_points=2 * equation.solve_points, substeps=2 * equation.substeps)
    coarse, fine = (simulate(each, seed, samples, out_dtype=torch.float64).u for each in (equation, finer))
    return relative(coarse, fine).mean
