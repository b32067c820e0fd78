"""Reference ensembles of a task with unseen noise, drawn from the true law of u given u0 and the seen noise.

    independent        further members of the true law, numbered after the stored ones; they are solved and not stored
    conditional_mean   the mean of further members, the best point forecast
    exact_gaussian     for a linear equation with additive noise:  u = m + X,  X_n = R X_{n-1} + sigma B dW_n  (mode by
                       mode), m the solution with the seen noise alone, dW the unseen noise, R and B those of the scheme

All are arrays (inputs, members, T, X..) for the test part, at its frames and points; ``inputs`` chooses some rows, so
that a caller can work block by block. The third law is known in closed form, Var X_n(k) = sigma^2 |B|^2 q_k h
(1 - |R|^{2n})/(1 - |R|^2), which tests everything that draws members.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import torch
from torch import Tensor

from spdebench.engines import check_free_memory
from spdebench.equations import Equation
from spdebench.equations.scheme import propagator_of
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.noise import PartialNoise, UnseenNoise
from spdebench.noise.stream import normal_pairs
from spdebench.noise.unseen import fill_states
from spdebench.solvers import simulate
from spdebench.solvers.loop import to_stored
from spdebench.tasks.parts import Part
from spdebench.tasks.task import Task

TOGETHER = {"cpu": 256, "cuda": 4096}
"""The number of paths that are solved at a time."""
MEAN_MEMBERS = 128
"""The default number of members of `conditional_mean`."""
TRIED = 4
"""The number of paths that are solved to estimate the time."""


def independent(
    task: Task, members: int = 64, *, first: int | None = None, inputs: slice = slice(None), device: str = "cpu"
) -> Tensor:
    """Members ``first``, first + 1, .. of the true law (by default those after the stored ones), for the test part."""
    start = _stored_members(task) if first is None else first
    return further_members(task.test, range(start, start + members), inputs, device)


def conditional_mean(
    task: Task, members: int = MEAN_MEMBERS, *, inputs: slice = slice(None), device: str = "cpu"
) -> Tensor:
    """The mean of ``members`` further members, as one member: (inputs, 1, T, X..)."""
    start, total = _stored_members(task), torch.zeros(())
    for number in range(start, start + members):
        total = total + further_members(task.test, range(number, number + 1), inputs, device).double()
    return (total / members).float()


def exact_gaussian(task: Task, members: int = 64, *, seed: int = 0, inputs: slice = slice(None)) -> Tensor:
    """Members of the exact Gaussian law for the test part; an error if the equation is not linear."""
    data = task.datasets[0].spec
    law = GaussianLaw(data.equation, _seen(task))
    samples = task.test.rows[0][inputs].tolist()
    return task.test.thinned(law.draw(data.seed, samples, members, seed))


def estimated_seconds(task: Task, members: int = 64, device: str = "cpu") -> float:
    """About how long `independent` takes: the time of a few paths, times their number."""
    first = _stored_members(task)
    start = time.perf_counter()
    further_members(task.test, range(first, first + TRIED), slice(0, 1), device)
    return (time.perf_counter() - start) / TRIED * members * len(task.test)


def further_members(part: Part, members: range, inputs: slice = slice(None), device: str = "cpu") -> Tensor:
    """These members of the true law of some samples of a part: (inputs, members, T, X..), float32."""
    data = part.datasets[0].spec
    if data.seen is None:
        raise UserError("members of a law need data with seen=K; generate with --seen K --members 64")
    rows = part.rows[0][inputs].tolist()
    samples, numbers = [row for row in rows for _ in members], tuple(members) * len(rows)
    kind = torch.device(device).type
    size = TOGETHER[kind]
    if kind == "cpu":
        what = f"{len(members)} members for each of {len(rows)} inputs"
        need = 4 * len(samples) * math.prod(part.shape)
        check_free_memory(need, what, "choose fewer members, or some inputs with inputs=slice(0, 10)")
    out = torch.empty((len(samples), *part.shape), device=device)
    with without_aliasing_warning():
        for start in range(0, len(samples), size):
            some = slice(start, start + size)
            partial = PartialNoise(data.seen, numbers[some])
            paths = simulate(data.equation, data.seed, samples[some], device=device, partial=partial)
            out[some] = part.thinned(paths.u)
    return out.reshape(len(rows), len(members), *part.shape)


def _seen(task: Task) -> int:
    """The truncation that is seen; an error if all of the noise is."""
    if task.spec.seen is None:
        raise UserError("all of the noise is seen in this task; a law needs a task with seen=K")
    return task.spec.seen


def _stored_members(task: Task) -> int:
    """The number of stored members, which is 1 (the sample itself) if there is no file of members."""
    _seen(task)
    try:
        return int(task.datasets[0].members_file.spec.members)
    except UserError:
        return 1


def is_gaussian(equation: Equation) -> bool:
    """Whether the law of u given u0 and the seen noise is Gaussian: linear, additive noise, first order in time."""
    rule = equation.rule
    linear = rule is not None and all(term.noise and not any(term.powers) for term in rule.monomials)
    return linear and not equation.multiplicative and equation.order == 1


class GaussianLaw:
    """The law of u given u0 and the noise that truncation ``seen`` keeps, for a linear equation with additive noise."""

    def __init__(self, equation: Equation, seen: int) -> None:
        if not is_gaussian(equation):
            raise UserError(
                f"{equation.name}: the law is Gaussian for linear equations with additive noise only, such as heat"
            )
        self.equation, self.seen = equation, seen
        self.grid, self.interval = equation.solving_grid, equation.horizon / equation.noise_steps
        with without_aliasing_warning():
            self.unseen = UnseenNoise(equation.wiener(self.grid), seen)
        scheme = propagator_of(equation, "the exact law", "members of the true law")
        symbol = equation.symbol(self.grid)
        self.decay, self.gain = scheme.response(symbol, self.interval, equation.substeps)

    def mean(self, seed: int, samples: Sequence[int]) -> Tensor:
        """m (N T X..): the solution with the seen noise alone."""
        with without_aliasing_warning():
            return simulate(self.equation, seed, samples, partial=PartialNoise(self.seen)).u

    def variance(self) -> Tensor:
        """Var X_n(k) at the stored frames: (T, modes of the solving grid)."""
        stride = self.equation.noise_steps // self.equation.frames
        each = self.equation.sigma**2 * self.gain.abs() ** 2 * self.unseen.power(self.grid) * self.interval
        total, out = torch.zeros_like(each), [torch.zeros_like(each)]
        for n in range(1, self.equation.noise_steps + 1):
            total = self.decay.abs() ** 2 * total + each
            if n % stride == 0:
                out.append(total)
        return torch.stack(out)

    def draw(self, seed: int, samples: Sequence[int], members: int, draw_seed: int = 0) -> Tensor:
        """``members`` draws for each of these samples of a seed, at the stored frames and points: (N m T X..)."""
        eq, mean = self.equation, self.mean(seed, samples)
        states = torch.stack([fill_states(draw_seed, samples, member, "cpu") for member in range(members)], 1)
        out = mean[:, None].repeat(1, members, *(1,) * (mean.ndim - 1))
        modes, stride = self.unseen.wiener.basis.modes, eq.noise_steps // eq.frames
        x = self.grid.transform(torch.zeros(states.numel(), *self.grid.points, dtype=torch.float64))
        for n in range(eq.noise_steps):
            z = normal_pairs(states.flatten(), torch.tensor([n]), modes, self.interval**0.5)[:, 0]
            x = self.decay * x + eq.sigma * self.gain * self.grid.transform(self.unseen.series(z))
            if (n + 1) % stride == 0:
                out[:, :, (n + 1) // stride] += to_stored(x, True, eq).unflatten(0, states.shape)
        return out
