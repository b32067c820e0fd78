"""Findings about inputs and targets of models: late noise, and a target that is not the solution."""

from __future__ import annotations

import torch
from torch import Tensor

from spdebench.data import Dataset
from spdebench.data.distance import relative
from spdebench.equations import Equation, Phi42, equation
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.findings.base import Finding, FindingOnFile, FindingResult, Sources, declare, printed
from spdebench.findings.regression import PERIODIC
from spdebench.paper import published
from spdebench.solvers import Trajectories, simulate, solve

SAMPLES = 60


# --- late noise ---------------------------------------------------------------------------------------------------
def one_step_late(dw: Tensor) -> Tensor:
    """dw'_1 = dw_1, dw'_n = dw_{n-1}: the first increment twice, the last one never."""
    return torch.cat([dw[:, :2], dw[:, 1:-1]], 1)


def without_current(eq: Equation, u: Tensor) -> Tensor:
    """E[u_n | u_{n-1}]: one step of the scheme without noise from every true frame; for additive noise and frames that
    hold every step."""
    step = eq.replace(horizon=eq.horizon / eq.steps, steps=1, frames=1)
    first = u[:, :-1].flatten(0, 1)
    nothing = torch.zeros(len(first), 2, *first.shape[1:], dtype=first.dtype)
    after = solve(step, first, nothing)[:, 1].unflatten(0, (len(u), -1))
    return torch.cat([u[:, :1], after], 1)


def late_noise(sources: Sources) -> FindingResult:
    """|E[u_n | u_{n-1}] - u_n| / |u|: the least error of a model that does not see dw_n, whatever else it knows."""
    numbers: dict[str, float] = {}
    rows = []
    for key, (level, (sigma, table)) in zip(("a", "b"), PERIODIC.items(), strict=True):
        eq = equation("phi41", sigma=sigma, truncation=128, edition="paper")
        paths = simulate(eq, 0, range(SAMPLES), out_dtype=torch.float64)
        least = relative(without_current(eq, paths.u), paths.u).mean
        late = relative(solve(eq, paths.u0, one_step_late(paths.dw)), paths.u).mean
        theirs = {name: printed(table, name, J="128") for name in ("NCDE", "NCDE-FNO")}
        numbers |= {f"least_{key}": least, f"late_{key}": late}
        numbers |= {f"{name.replace('-', '').lower()}_{key}": value for name, value in theirs.items()}
        row = {"phi41, J = 128": level, "least error without dw_n": least, "solver, noise a step late": late}
        rows.append(row | {f"{name}, published": value for name, value in theirs.items()})
    return FindingResult(numbers, rows)


def late_on_file(sources: Sources, data: Dataset) -> FindingResult:
    """The error of the solver with late noise on the samples of a file whose equation is known."""
    if data.imported:
        raise UserError(f"{data.path.name} is imported and has no equation to solve again; give a generated file")
    rows = min(SAMPLES, len(data))
    u0, dw, u = (torch.from_numpy(data.read(c, 0, rows)).double() for c in ("u0", "dw", "u"))
    with without_aliasing_warning():
        return FindingResult({"late": relative(solve(data.equation, u0, one_step_late(dw)), u).mean})


declare(
    Finding(
        name="late-noise",
        title="The Euler step of the released NCDE models uses each increment of the noise one step late.",
        sentence="A model that does not see the increment that ends at t_n has an error of at least {least_a:.3f} at "
        "sigma 0.1 and {least_b:.2f} at sigma 1, even if it knows the solution at t_(n-1). The solver "
        "itself, with the noise one step late, has an error of {late_a:.3f} and {late_b:.2f}. The paper "
        "prints {ncdefno_a:g} and {ncdefno_b:g} for NCDE-FNO, and {ncde_a:g} and {ncde_b:g} for NCDE.",
        follows="The released code takes the slope of a piecewise linear control at a knot from the left. An Euler "
        "step from t_n therefore uses the increment before t_n; the first increment is used twice and the "
        "last one never (a Runge-Kutta step gives the old increment a weight of one eighth). Use the "
        "increments directly, z_(n+1) = z_n + f(z_n) dW_(n+1), and test causality in both directions: an "
        "increment must change the frame at its end, and no frame before it.",
        uses=("fresh data", "published numbers"),
        compute=late_noise,
        on_file=FindingOnFile(
            "On this file the solver with noise one step late has an error of {late:.4g}.", late_on_file
        ),
    )
)


# --- another target -----------------------------------------------------------------------------------------------
def spread(paths: Trajectories, every: int) -> Tensor:
    """The increments of ``every`` steps summed, as a model gets them, and spread evenly over these steps."""
    shape = paths.dw.shape[2:]
    sums = paths.dw[:, 1:].unflatten(1, (-1, every)).mean(2, keepdim=True).expand(-1, -1, every, *shape)
    return torch.cat([paths.dw[:, :1], sums.flatten(1, 2)], 1)


def target(sources: Sources) -> FindingResult:
    """|E[u | summed dw] - u| / |u|, E about S(u_0, summed dw spread evenly): no model of that noise is below it."""
    eq, every = Phi42(truncation=128, sigma=0.1, edition="paper"), 5
    with without_aliasing_warning():
        paths = simulate(eq, 0, range(4), out_dtype=torch.float64)
        guess = solve(eq, paths.u0, spread(paths, every))
    floor = relative(guess[:, ::every], paths.u[:, ::every]).mean
    grid = [n for n in published.numbers() if n.table == "tab:phi42_nspde-S_grid"]
    low, high = (f(n.mean for n in grid) for f in (min, max))
    same = [n for n in published.numbers() if n.table == "tab:phi42:noiselevel"]
    main = min(n.mean for n in same if n.columns["model"] == "NSPDE-S" and n.columns["J"] == "128")
    below = sum(n.mean < floor for n in grid)
    return FindingResult({"floor": floor, "low": low, "high": high, "main": main, "below": below, "count": len(grid)})


declare(
    Finding(
        name="nspde-s",
        title="The released code trains NSPDE-S on a target other than the solution.",
        sentence="On Phi42 with J = 128 the input contains only the sums of the noise over five solver steps, and "
        "the smallest possible error is {floor:.3f}. The paper's hyper-parameter search for NSPDE-S prints "
        "{low:g} to {high:g} for this J ({below:.0f} of {count:.0f} values are below the smallest possible "
        "error), and its main table prints {main:g}.",
        follows="The data loader yields (u0, xi, a, u), but the training loop reads (u0, xi, u, a): the network "
        "learns the renormalisation field a, with |u| as an input. Compute the floor (the smallest possible "
        "error for the given input) before training; an error below it points to a leak or to a wrong "
        "target. Pass the fields of a batch by name, not by position.",
        uses=("fresh data", "published numbers"),
        compute=target,
    )
)
