"""Strong orders on coupled paths: the slope of log error against log step, with its standard error by the jackknife."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from spdebench.equations import Equation
from spdebench.solvers import simulate


def final(equation: Equation, samples: Sequence[int], seed: int = 1) -> torch.Tensor:
    """u(T) in float64."""
    return simulate(equation, seed, samples, out_dtype=torch.float64, every=equation.frames).u[:, -1]


def paths_at(equation: Equation, steps: int, **changes: object) -> Equation:
    """The spec with so many steps, all of them noise intervals in either edition."""
    return equation.replace(steps=steps, frames=steps, **changes)


def slope(squared: torch.Tensor) -> tuple[float, float]:
    """Order and standard error from squared errors (levels, samples), each level halving the step."""
    levels, n = squared.shape
    x = torch.arange(levels, dtype=torch.float64)
    x = x - x.mean()

    def fit(mean: torch.Tensor) -> torch.Tensor:
        return -(x @ (0.5 * mean.log2())) / (x @ x)

    whole = fit(squared.mean(1))
    left_out = torch.stack([fit((squared.sum(1) - squared[:, i]) / (n - 1)) for i in range(n)])
    error = math.sqrt((n - 1) / n * float(((left_out - left_out.mean()) ** 2).sum()))
    return float(whole), error


def strong_order(
    equation: Equation, steps: Sequence[int], reference: Equation, samples: Sequence[int]
) -> tuple[float, float]:
    """Slope of E|u_h(T) - u_ref(T)|^2 ^(1/2) over the dyadic ``steps``."""
    exact = final(reference, samples)
    errors = [(final(paths_at(equation, s), samples) - exact).square().mean(-1) for s in steps]
    return slope(torch.stack(errors))


def distances_of_senses(equation: Equation, samples: Sequence[int]) -> tuple[float, float]:
    """u(T) of the edition paper minus that of converged, (E|.|^2)^(1/2): in the same sense, and in the other one.

    Checks the strong orders: 1/2 of Euler's method, 1 of averaged noise. ``equation`` has multiplicative noise. Four
    sub-steps of an interval are enough: with 32 the orders differ by less than 1e-4, the distances by less than 1e-6.
    """
    ends = {}
    for edition, order in (("paper", 0.5), ("converged", 1.0)):
        eq = equation.replace(edition=edition)
        eq = eq.replace(substeps=min(eq.substeps, 4))
        ends[edition] = final(paths_at(eq, 512), samples)
        errors = [(final(paths_at(eq, s), samples) - ends[edition]).square().mean(-1) for s in (16, 32, 64)]
        assert_order(slope(torch.stack(errors)), order)
    sense = "ito" if equation.calculus == "stratonovich" else "stratonovich"  # type: ignore[attr-defined]
    other = final(paths_at(equation, 512, edition="paper", calculus=sense), samples)
    return tuple(float((u - ends["converged"]).square().mean().sqrt()) for u in (ends["paper"], other))


def assert_order(measured: tuple[float, float], theory: float) -> None:
    order, error = measured
    assert abs(order - theory) <= 0.1 + 3 * error, f"order {order:.3f} +- {error:.3f}, theory {theory}"
