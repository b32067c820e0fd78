"""Choose a step where none is exact: by the errors of single steps first, and by rolled-out paths at the end.

    one step    |v(u_n, dw_{n+1}) - u_{n+1}| / |u_{n+1}|,   v the prediction from the true frames

If frames are far apart, u_{n+1} is no polynomial in u_n and dw_{n+1}. The paths of a step with too few terms then say
little: they leave the range of the data, or chaos amplifies their errors, and the search of `choose` ends early. The
error of one step shows also for a bad step whether a term helps. `OneStepSearch` therefore adds terms by that error.
Among the plans that it passes, with a weak and a strong ridge, bounded or not, the rolled-out validation paths decide.
"""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

from spdebench.models.step.choose import Search, error
from spdebench.models.step.fit import Choice, Plan
from spdebench.models.step.residual import one_step
from spdebench.models.step.rollout import Paths, Stepper

VALUES = 1 << 18
"""About how many values of validation paths are used for the errors of one step."""
STAGE_RIDGES = (1e-11, 1e-4)
"""Ridges of all stages of a fit; the strong one is for steps whose paths amplify errors."""
CLEARLY = 0.95
"""A later choice is made if it multiplies the error of the paths by at most this factor."""


class StepSearch(Search):
    """The search of `choose` and, if its step is not exact, `OneStepSearch`; the second is taken if clearly better."""

    def run(self) -> Choice:
        """The choice of the first search unless that of the second is clearly better."""
        best = super().run()
        if best.error <= self.retry:
            return best
        sizes = dataclasses.replace(self.sizes, search_rows=min(2 * self.sizes.search_rows, self.sizes.final_rows))
        other = OneStepSearch(self.grid, self.train, self.val, sizes, self.most_stages, self.most_history)
        found = other.run()
        if not self._better(found, best):
            return best
        self.notes += other.notes
        self.tried |= other.paths
        return found


@dataclasses.dataclass
class OneStepSearch(Search):
    """The search by the errors of one step; its choice has the smallest error of rolled-out paths."""

    paths: dict[Plan, float] = dataclasses.field(default_factory=dict)  # the errors of rolled-out paths

    gain: ClassVar[float] = 0.9
    retry: ClassVar[float] = 0.0
    ridges: ClassVar[tuple[float, ...]] = (1e-11,)

    def _score(self, made: Stepper, paths: int) -> float:
        return one_step_error(made, self._paths(VALUES))

    def run(self) -> Choice:
        """Of the plans that the search has passed, the one with the smallest error of rolled-out validation paths."""
        self._search()
        val = Paths(self.val.u[: self.sizes.final_paths], self.val.dw[: self.sizes.final_paths])
        best: Choice | None = None
        for plan in dict.fromkeys(self.kept):
            for ridge in STAGE_RIDGES:
                free = self._fit(plan, self.sizes.final_rows, 0, (ridge,)).stepper
                for bounded in (False, True):
                    stepper = dataclasses.replace(free, bounded=bounded)
                    found = error(stepper, val) if bounded or self._stable(stepper) else math.inf
                    made = Choice(plan.having(bounded=bounded), stepper, found)
                    self.paths[made.plan] = min(found, self.paths.get(made.plan, math.inf))
                    if best is None or found < CLEARLY * best.error:
                        best = made
        assert best is not None
        return best


def one_step_error(stepper: Stepper, paths: Paths) -> float:
    """The root mean square of v - u_{n+1} over that of u_{n+1}, over all paths, steps and points."""
    gap = size = 0.0
    for n in range(paths.frames - 1):
        for first in range(0, len(paths), stepper.paths_at_once):
            rows = slice(first, first + stepper.paths_at_once)
            _, _, difference = one_step(stepper, Paths(paths.u[rows], paths.dw[rows]), n)
            gap += float(stepper.grid.inverse(difference).square().sum())
        size += float(paths.u[:, n + 1].double().square().sum())
    found = math.sqrt(gap / max(size, 1e-300))
    return found if math.isfinite(found) else math.inf
