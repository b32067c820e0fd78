"""Choose the step and the law of its residual on the validation part, by proper scores.

    one step     mean of E|Z - r| - E|Z - Z'|/2 over points and steps,   Z ~ N(m(v), s(v)^2): CRPS of u_{n+1}(x)
    ensembles    mean over paths y of E|X - y| - E|X - X'|/2,  L2 of space, mean over t_1..t_T: energy score

In expectation no law has a better score than the true one. The first score has a closed form and needs no random
numbers. It decides in which order terms, stages and earlier frames are added to the step, in the search of `choose`.
The plans that this search has kept are fitted on more rows and rolled out with drawn residuals, all with the same
random numbers. The second score chooses among these plans, and then the kind of law of the residual; it depends on
whole paths, also on those that leave the range of the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from spdebench.metrics.law import terms
from spdebench.models.step.choose import Search
from spdebench.models.step.fit import Choice, Plan
from spdebench.models.step.residual import Kind, Residual, fit_residual, one_step
from spdebench.models.step.rollout import Paths, Stepper
from spdebench.noise.unseen import fill_states

SEED = 20
"""Seed of the members that are drawn for a choice; those of a prediction have other sample numbers or seeds."""
MEMBERS = 10
SEARCH_VALUES = 1 << 18
"""About how many values of residuals and of validation paths are used during the search."""
FINAL_VALUES = 1 << 18
"""About how many values of validation paths are rolled out at the end of the search."""
DEFAULT = Kind("amplitude", "v")
KINDS = (Kind(), Kind("amplitude", "u"), DEFAULT, Kind("quantiles", "u"), Kind("quantiles", "v"))
CLEARLY = 0.99
"""A later plan or a more complicated law is chosen if it multiplies the score by at most this factor."""


@dataclass
class LawChoice(Choice):
    """A fitted plan with the law of its residual; the error is its score."""

    residual: Residual


def draw_members(
    stepper: Stepper, residual: Residual, u0: Tensor, dw: Tensor, members: range, seed: int, samples: Tensor
) -> Tensor:
    """u (B, m, T, X..) in float64: rollouts with drawn residuals, a function of (seed, sample, member)."""
    count = len(members)
    states = torch.stack([fill_states(seed, samples, member, u0.device) for member in members], 1).flatten()
    inputs = (x.repeat_interleave(count, 0) for x in (u0, dw))
    drawn = stepper.rollout(*inputs, random=residual, states=states)
    return torch.unflatten(drawn, 0, (len(u0), count))


def energy_score(stepper: Stepper, residual: Residual, paths: Paths, members: int) -> float:
    """The score of ensembles against these paths; inf if a member is not finite."""
    x = draw_members(stepper, residual, paths.u[:, 0], paths.dw, range(members), SEED, torch.arange(len(paths)))
    y = paths.u[:, 1:].double().flatten(2)
    frame, _ = terms.distances(x[:, :, 1:].flatten(3).transpose(1, 2), y[:, :, None], 1 / y.shape[-1], 1.0)
    found = float(frame.energy_score.mean() / y.square().mean(2).sqrt().mean().clamp_min(1e-300))
    return found if math.isfinite(found) else math.inf


def one_step_score(stepper: Stepper, residual: Residual, paths: Paths) -> float:
    """The mean CRPS of the values of u_{n+1} given the true frames before, over the mean of |u|."""
    grid, total = stepper.grid, 0.0
    for n in range(paths.frames - 1):
        _, v, r = one_step(stepper, paths, n)
        table = residual.laws[min(n, len(residual.laws) - 1)].table
        assert table is not None
        state, values = grid.inverse(v), grid.inverse(r)
        mean, above = (table(state, torch.full_like(state, z)) for z in (0.0, 1.0))
        total += float(gaussian_crps(values - mean, (above - mean).clamp_min(1e-300)).mean())
    found = total / (paths.frames - 1) / max(float(paths.u[:, 1:].abs().mean()), 1e-300)
    return found if math.isfinite(found) else math.inf


def gaussian_crps(distance: Tensor, deviation: Tensor) -> Tensor:
    """s (w (2 Phi(w) - 1) + 2 phi(w) - pi^{-1/2}),  w = distance/s: the CRPS of N(0, s^2) at ``distance``."""
    w = distance / deviation
    density = torch.exp(-0.5 * w.square()) / math.sqrt(2 * math.pi)
    inside: Tensor = 2 * torch.special.ndtr(w) - 1
    return deviation * (w * inside + 2 * density - 1 / math.sqrt(math.pi))


@dataclass
class LawSearch(Search):
    """The search for a step with a drawn residual."""

    laws: list[tuple[str, float]] = field(default_factory=list)  # those that were rolled out, with their scores

    gain: ClassVar[float] = 0.99
    same: ClassVar[float] = 1.001
    retry: ClassVar[float] = 0.0
    ridges: ClassVar[tuple[float, ...]] = (1e-11,)

    def _score(self, made: Stepper, paths: int) -> float:
        residual = fit_residual(made, self.train, DEFAULT, SEARCH_VALUES)
        return one_step_score(made, residual, self._paths(SEARCH_VALUES))

    def _extensions(self, plan: Plan) -> Iterator[tuple[str, Plan]]:
        """The extensions of `Search`, without products with the noise if no noise is seen."""
        silent = not bool(self.train.dw.any())
        return ((what, more) for what, more in super()._extensions(plan) if not (silent and what == "noise"))

    def run(self) -> LawChoice:
        """The plan and the law with the best score, both fitted on the larger number of rows."""
        self._search()
        found: LawChoice | None = None
        for plan in dict.fromkeys(reversed(self.kept)):  # first the plan with the best score of one step
            made = self._fit(plan, self.sizes.final_rows, 0, self.ridges)
            found = self._better_law(made.plan, made.stepper, DEFAULT, found)
        assert found is not None
        plan, stepper = found.plan, found.stepper
        law = self._better_law(plan, stepper, Kind(), None)
        for kind in KINDS[1:]:
            law = found if kind == DEFAULT and found.error < CLEARLY * law.error else law
            law = law if kind == DEFAULT else self._better_law(plan, stepper, kind, law)
        return self._better_law(plan, stepper, replace(law.residual.kind, memory=True), law)

    def _better_law(self, plan: Plan, stepper: Stepper, kind: Kind, found: LawChoice | None) -> LawChoice:
        """The law of this kind for a fitted step if it is clearly better than ``found``, else ``found``."""
        residual = fit_residual(stepper, self.train, kind)
        score = energy_score(stepper, residual, self._paths(FINAL_VALUES), MEMBERS)
        self.laws.append((f"{plan.label}; residual {kind.label}", score))
        if found is not None and not score < CLEARLY * found.error:
            return found
        return LawChoice(plan, stepper, score, residual)
