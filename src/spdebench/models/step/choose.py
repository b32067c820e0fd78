"""Choose the plan on the validation part, by the error of whole rolled-out paths.

    error = mean over samples of |rollout - u| / |u| over t_1..t_T

Forward selection: starting from u, dw, 1, u^2, u^3, every extension (a frame that moves with the mean of u, a group of
terms, the other form of products or derivatives, one more earlier frame, one more stage) is fitted on a few thousand
rows; the best one is kept if it lowers the error by 15 %, and the search goes on from there. It ends as soon as the
error is that of stored float32 values. The plan that wins is fitted once more on more rows. A fit whose path leaves the
range of the training data is noted and not chosen. Where this search does not find the solver's own step, a second one
(`one_step`) is tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import torch

from spdebench.grids import Grid
from spdebench.models.step.fit import Choice, Plan, fit
from spdebench.models.step.frame import fit_velocity
from spdebench.models.step.rollout import Paths, Stepper

GAIN = 0.85
"""An extension is kept if it multiplies the error by at most this factor."""
HALF = 0.5
"""An extension that multiplies the error by at most this factor is kept at once, without trying the others."""
SAME = 1.01
"""A group of terms is left out if the error without it is at most this many times larger."""
RETRY = 1e-3
"""If the error is above this value, extensions that did not help alone are tried again together with others."""
ENOUGH = 2e-7
"""The search ends at this error, which is the rounding error of float32."""
DIVERGED = 2.0
"""A path with a larger relative error counts as diverged."""
FRAME_VALUES = 500_000
"""About how many values of u are used to fit the velocity of a moving frame."""
FINALISTS = 4
"""The most plans that are fitted on the larger number of rows, until one is stable."""
COARSE_RIDGES = (1e-12, 1e-8)
RIDGES = (1e-13, 1e-11, 1e-9, 1e-7, 1e-6)


@dataclass
class Sizes:
    """How many rows of a regression and how many validation paths are used, during the search and at its end."""

    search_rows: int
    search_paths: int
    final_rows: int
    final_paths: int

    @staticmethod
    def of(grid: Grid, frames: int, rows: int) -> Sizes:
        """The sizes for paths with this many frames on a grid; ``rows`` is the most that a regression may use."""
        points = math.prod(grid.points)
        return Sizes(
            search_rows=min(rows, 4000, max(600, 2_500_000 // points)),
            search_paths=max(4, min(16, 4_000_000 // (frames * points))),
            final_rows=min(rows, max(8000, 40_000_000 // points)),
            final_paths=max(8, min(200, 16_000_000 // (frames * points))),
        )


@dataclass
class Search:
    """The search for the best plan: its data, and the plans that have been tried."""

    grid: Grid
    train: Paths
    val: Paths
    sizes: Sizes
    most_stages: int = 3
    most_history: int = 3
    notes: list[str] = field(default_factory=list)
    tried: dict[Plan, float] = field(default_factory=dict)
    kept: list[Plan] = field(default_factory=list)  # the plans from which the search went on, the first being the least

    gain: ClassVar[float] = GAIN
    same: ClassVar[float] = SAME
    retry: ClassVar[float] = RETRY
    ridges: ClassVar[tuple[float, ...]] = COARSE_RIDGES

    def __post_init__(self) -> None:
        self.limits = self.train.range(self.grid)
        self.train = self.train.with_silent_modes(self.grid)

    def run(self) -> Choice:
        """The best plan, fitted on the larger number of rows; if a path then diverges the next best, or a linear one.

        The larger number of validation paths is used here, and twice as many training paths to test the stability.
        """
        best = self._search()
        order = [best.plan, *sorted((p for p in self.tried if p != best.plan), key=lambda p: self.tried[p])]
        plans = [plan for plan in order[:FINALISTS] if math.isfinite(self.tried[plan])]
        if best.plan.groups:
            plans.append(Plan(groups=(), velocity=best.plan.velocity))
        final = best
        for plan in plans or [best.plan]:
            final = self._fit(plan, self.sizes.final_rows, self.sizes.final_paths, RIDGES, stable=self._stable)
            if math.isfinite(final.error):
                break
            self.notes.append(f"diverged when fitted on more rows: {plan.label}")
        return final

    def _stable(self, made: Stepper) -> bool:
        """Whether no training path diverges."""
        count = 2 * self.sizes.final_paths
        return math.isfinite(error(made, Paths(self.train.u[:count], self.train.dw[:count])))

    def _search(self) -> Choice:
        """Forward selection, then backward: groups without which the error is the same are left out."""
        best, useless = self._try(Plan()), set[str]()
        while best.error > ENOUGH:
            self.kept.append(best.plan)
            found, idle = self._round(best, useless, retry_useless=False)
            if not self._better(found, best) and best.error > self.retry:
                found, idle = self._round(best, useless, retry_useless=True)
            if not self._better(found, best):
                break
            best, useless = found, useless | idle
        for name in best.plan.groups:
            found = self._try(best.plan.having(groups=tuple(g for g in best.plan.groups if g != name)))
            if found.error <= max(self.same * best.error, ENOUGH):
                best = found
        self.kept.append(best.plan)
        return best

    def _round(self, best: Choice, useless: set[str], *, retry_useless: bool) -> tuple[Choice, set[str]]:
        """The best extension of a plan, or the first that halves the error; and the names of those that did not help.

        Extensions that did not help before (``useless``) are left out, or with ``retry_useless`` only they are tried.
        """
        found, idle = best, set[str]()
        for what, plan in self._extensions(best.plan):
            if plan in self.tried or (what in useless) is not retry_useless:
                continue
            made = self._try(plan, best)
            if made.error < found.error:
                found = made
            if made.error < HALF * best.error:
                break
            if not made.error < 0.98 * best.error:
                idle.add(what)
        return found, idle

    def _extensions(self, plan: Plan) -> Iterator[tuple[str, Plan]]:
        """(name, plan) for each extension of a plan by one thing; those that are cheap and often needed come first."""
        if self.velocity and not plan.velocity:
            yield "frame", plan.having(velocity=self.velocity)
        names = ["noise", "gradients", *(["inverse"] if self.grid.dim < 3 else [])]
        later = [*(["means"] if self.grid.periodic else []), "time", "high"]
        for name in names:
            if name not in plan.groups:
                yield name, plan.having(groups=(*plan.groups, name))
        if "gradients" in plan.groups:
            yield "derivatives", plan.having(difference=not plan.difference)
        if plan.stages < self.most_stages:
            yield "stage", plan.having(stages=plan.stages + 1)
        if plan.history < min(self.most_history, self.train.frames - 2):
            yield "history", plan.having(history=plan.history + 1)
        for name in later:
            if name not in plan.groups:
                yield name, plan.having(groups=(*plan.groups, name))
        yield "products", plan.having(dealiased=not plan.dealiased)

    @cached_property
    def velocity(self) -> tuple[float, ...]:
        """The velocities of a moving frame in which one linear step is clearly better than at rest; () if none is."""
        if not self.grid.periodic:
            return ()
        rows = max(100, min(self.sizes.search_rows, FRAME_VALUES // math.prod(self.grid.points)))
        blocks = self.train.blocks(self.grid, 0, None, rows, 1)
        parts = [(fields["u"], fields["w"], target) for fields, target, _ in blocks]
        return fit_velocity(self.grid, *(torch.cat(part) for part in zip(*parts, strict=True)))

    def _try(self, plan: Plan, base: Choice | None = None) -> Choice:
        """Fit a plan on few rows for comparison, continuing ``base`` if that is the same plan with fewer stages."""
        start = base if base and plan.stages > 1 and plan.having(stages=base.plan.stages) == base.plan else None
        found = self._fit(plan, self.sizes.search_rows, self.sizes.search_paths, self.ridges, start)
        self.tried[plan] = found.error
        if not math.isfinite(found.error):
            self.notes.append(f"diverged on validation: {plan.label}")
        return found

    def _fit(
        self,
        plan: Plan,
        rows: int,
        paths: int,
        ridges: tuple[float, ...],
        start: Choice | None = None,
        stable: Callable[[Stepper], bool] | None = None,
    ) -> Choice:
        """Fit a plan on at most ``rows`` rows; its error is that of `_score` on ``paths`` validation paths."""
        return fit(
            plan, self.grid, self.train, rows, self.limits, lambda made: self._score(made, paths), ridges, start, stable
        )

    def _score(self, made: Stepper, paths: int) -> float:
        """The error on the first ``paths`` validation paths."""
        return error(made, Paths(self.val.u[:paths], self.val.dw[:paths]))

    def _paths(self, values: int) -> Paths:
        """The first validation paths, with about this number of values in all."""
        count = max(24, values // (math.prod(self.grid.points) * self.val.frames))
        return Paths(self.val.u[:count], self.val.dw[:count])

    def _better(self, found: Choice, best: Choice) -> bool:
        """Whether ``found`` lowers the error enough to be kept."""
        return math.isfinite(found.error) and not found.error > self.gain * best.error


def error(stepper: Stepper, paths: Paths) -> float:
    """Mean relative L2 error of rolled-out paths; inf if one diverges: it leaves the range, or its error is above
    DIVERGED. A bounded step does neither: with an error of 2 a path has only reached the opposite of the truth."""
    v = stepper.rollout(paths.u[:, 0], paths.dw, replace=False)
    gap, size = ((x[:, 1:].double()).flatten(1).norm(dim=1) for x in (v - paths.u, paths.u))
    errors = (gap / size)[size > 0]
    if not stepper.bounded and bool(stepper.left_range(v)[:, -1].any() or (errors > DIVERGED).any()):
        return math.inf
    return float(errors.mean()) if len(errors) else 0.0


def training_and_validation(paths: Paths) -> tuple[Paths, Paths]:
    """Split one set of paths into training and validation paths; the latter are the last quarter of them."""
    count = max(1, len(paths) // 4)
    if len(paths) < 2:
        return paths, paths
    return Paths(paths.u[:-count], paths.dw[:-count]), Paths(paths.u[-count:], paths.dw[-count:])
