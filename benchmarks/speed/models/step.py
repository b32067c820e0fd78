"""Step: normal equations of all modes at once, paths rolled out together, against least squares mode by
mode on the matrix of all rows and one path after another.

``step-phi41`` and ``step-phi42`` are whole fits on the paper's data, against the solver that makes these data.
"""

from __future__ import annotations

import torch
from torch import Tensor

from spdebench.equations import equation
from spdebench.models.step.fit import Plan, normal_equations
from spdebench.models.step.model import StepConfig, StepModel
from spdebench.models.step.rollout import Map, Paths, Stepper
from spdebench.solvers import simulate
from spdebench.tasks import Batch, default_setting
from speed.models.base import Case, phi41_setting

ROLLED = 180
"""The paper's test part."""


def columns(u: Tensor, dw: Tensor) -> Tensor:
    """(5, rows, modes): u, dw, 1, u^2, u^3 of fields at the points."""
    fields = (u, dw, u**2, u**3)
    made = [torch.fft.rfft(f, norm="forward") for f in fields]
    return torch.stack([made[0], made[1], torch.ones_like(made[0]), made[2], made[3]])


def fitted_plainly(u: Tensor, dw: Tensor) -> Tensor:
    """(5, modes) by `lstsq` for each mode."""
    rows = columns(u[:, :-1].flatten(0, 1), dw[:, 1:].flatten(0, 1))
    target = torch.fft.rfft(u[:, 1:].flatten(0, 1), norm="forward")
    return torch.stack([torch.linalg.lstsq(rows[..., k].T, target[:, k : k + 1]).solution[:, 0]
                        for k in range(target.shape[1])], 1)  # fmt: skip


def rolled_plainly(weights: Tensor, u0: Tensor, dw: Tensor) -> Tensor:
    """One path after another."""
    out = torch.zeros_like(dw)
    for path, first, noise in zip(out, u0, dw, strict=True):
        path[0] = first
        for n in range(len(noise) - 1):
            c = (weights * columns(path[n], noise[n + 1])).sum(0)
            path[n + 1] = torch.fft.irfft(c, n=len(first), norm="forward")
    return out


def case(data: str = "", samples: int = 0) -> Case:
    return whole_fit(data, samples or 1200) if data else one_plan(samples or 180)


def one_plan(samples: int) -> Case:
    setting = phi41_setting()
    assert setting.equation is not None
    made = simulate(setting.equation, 0, range(samples))
    grid, paths = setting.grid, Paths(made.u, made.dw)
    plan, limits = Plan(), paths.range(setting.grid)
    u, dw = made.u.double(), made.dw.double()

    def ours() -> Tensor:
        dictionary = plan.dictionary(grid, u.device)
        system = normal_equations(plan, Map(0), 1, dictionary, paths, samples * setting.frames)
        stepper = Stepper(dictionary, [system.extend(Map(0), 1e-13)], *limits, paths.frames - 1)
        return stepper.rollout(made.u0[:ROLLED], made.dw[:ROLLED])

    def plain() -> Tensor:
        return rolled_plainly(fitted_plainly(u, dw), u[:ROLLED, 0], dw[:ROLLED])

    note = f"fit of 5 terms on {samples} paths, rollout of {ROLLED}"
    return Case("step", 1.5, ours, plain, note)


def whole_fit(name: str, samples: int) -> Case:
    """Search, fit and prediction at the paper's sub-sampling: 70 % of the samples train, 15 % validate, 15 % test."""
    eq = equation(name)
    setting = default_setting(eq)
    every = eq.frames // (setting.frames - 1)
    made = simulate(eq, 0, range(samples), every=every)
    first, second = 70 * samples // 100, 85 * samples // 100
    train, val = (
        ({"u0": made.u0[rows], "dw": made.dw[rows]}, made.u[rows]) for rows in (slice(first), slice(first, second))
    )
    test = Batch(made.u0[second:], made.dw[second:], (eq,))

    def ours() -> Tensor:
        found = StepModel(setting, StepConfig())
        found.calibrate_stream([train], [val])
        return found.predict(test)

    threads, limit = (1, "one thread, limit 15 s") if name == "phi41" else (2, "two threads, limit 120 s")
    note = f"search, fit and prediction against the solver of these {samples} paths; {limit}"
    return Case(
        f"step-{name}", None, ours, lambda: simulate(eq, 0, range(samples), every=every), note, threads, once=True
    )
