"""Fit one plan: which terms, in which form, with which history and how many stages.

Every map (that of each of the first steps, and that of all others) is fitted stage by stage: the terms of stage s+1 are
those of stage 1 and all products in which v_s takes the place of u_n.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from spdebench.grids import Grid
from spdebench.models.step.dictionary import Dictionary, Term, group, mixed, moved, noise_terms
from spdebench.models.step.frame import Frame
from spdebench.models.step.normal import Normal
from spdebench.models.step.rollout import Map, Paths, Stage, Stepper


@dataclass(frozen=True)
class Plan:
    """The options of a step, which are chosen on the validation part."""

    groups: tuple[str, ...] = ("powers",)
    dealiased: bool = False  # products on a grid twice as fine, else at the points
    difference: bool = False  # central differences, else spectral derivatives
    history: int = 0  # earlier frames
    stages: int = 1
    velocity: tuple[float, ...] = field(default=(), metadata={"legacy": ()})  # of a moving frame: a, b for each axis
    bounded: bool = field(default=False, metadata={"legacy": False})  # values are cut at the range of the training part

    def having(self, **changes: Any) -> Plan:
        """This plan with other values."""
        return dataclasses.replace(self, **changes)

    @property
    def label(self) -> str:
        """The plan in words, for the notes of a run."""
        words = ["u, dw, 1", *self.groups]
        if self.groups:
            words.append("de-aliased products" if self.dealiased else "pointwise products")
        if {"gradients", "inverse"} & set(self.groups):
            words.append("central differences" if self.difference else "spectral derivatives")
        if self.velocity:
            words.append("moving frame")
        if self.history:
            words.append(f"history {self.history}")
        if self.stages > 1:
            words.append(f"{self.stages} stages")
        if self.bounded:
            words.append("bounded values")
        return "; ".join(words)

    def terms(self, dim: int, history: int, stage: int) -> list[Term]:
        """The terms of one stage of a map with this history, which are the columns of its regression."""
        nonlinear = [t for name in self.groups for t in group(name, dim)]
        out = [Term((("u", ""),)), Term((("w", ""),)), Term(), *nonlinear]
        for lag in range(1, history + 1):
            out += [Term(((f"u{lag}", ""),)), Term(((f"w{lag}", ""),)), *moved(nonlinear, lag)]
        if stage > 1:
            out += mixed((t for t in nonlinear if not t.linear or t.mean or t.square), "u", f"v{stage - 1}")
        return list(dict.fromkeys(out))

    def dictionary(self, grid: Grid, device: torch.device) -> Dictionary:
        frame = None
        if self.velocity:
            frame = Frame(grid, torch.tensor(self.velocity, dtype=torch.float64, device=device).reshape(grid.dim, 2))
        return Dictionary(grid, dealiased=self.dealiased, difference=self.difference, device=device, frame=frame)


@dataclass
class Choice:
    """A fitted plan and its error on validation; ``inf`` if a path left the range of the training data."""

    plan: Plan
    stepper: Stepper
    error: float


def fit(
    plan: Plan,
    grid: Grid,
    paths: Paths,
    most_rows: int,
    limits: tuple[torch.Tensor, float],
    score: Callable[[Stepper], float],
    ridges: Sequence[float],
    start: Choice | None = None,
    stable: Callable[[Stepper], bool] | None = None,
) -> Choice:
    """Fit stage after stage on at most ``most_rows``, each with the ridge whose rollout has the smallest ``score``.

    ``start`` is a fit of the same plan with fewer stages, which is continued. With ``stable`` the last stage gets the
    best ridge that passes that test; the error is infinite if none does.
    """
    dictionary = plan.dictionary(grid, paths.u.device)
    maps = start.stepper.maps if start else [Map(n) for n in range(plan.history + 1)]
    best: Choice | None = None
    for stage in range(start.plan.stages + 1 if start else 1, plan.stages + 1):
        systems = [normal_equations(plan, one, stage, dictionary, paths, most_rows) for one in maps]
        trials = []
        for ridge in ridges:
            extended = [s.extend(one, ridge) for one, s in zip(maps, systems, strict=True)]
            made = Stepper(dictionary, extended, *limits, paths.frames - 1, plan.bounded)
            trials.append(Choice(plan.having(stages=stage), made, score(made)))
        trials.sort(key=lambda choice: choice.error)
        best = trials[0]
        if stable is not None and stage == plan.stages:
            sound = (c for c in trials if math.isfinite(c.error) and stable(c.stepper))
            best = next(sound, dataclasses.replace(best, error=math.inf))
        maps = best.stepper.maps
    assert best is not None
    return best


@dataclass
class System:
    """The normal equations of one stage of a map."""

    terms: list[Term]
    normal: Normal
    shape: tuple[int, ...]  # of the coefficients
    silent: torch.Tensor | None = None  # modes in which dw has no coefficient

    def extend(self, one: Map, ridge: float) -> Map:
        """The map with one more stage, solved with this ridge."""
        weights = self.normal.solve(ridge).reshape(len(self.terms), *self.shape)
        if self.silent is not None:
            weights[noise_terms(self.terms)] *= ~self.silent
        return Map(one.history, [*one.stages, Stage(self.terms, weights)])


def normal_equations(plan: Plan, one: Map, stage: int, dictionary: Dictionary, paths: Paths, most_rows: int) -> System:
    """Sum the rows of the next stage of the map ``one``; with less history than the plan it is for one early step."""
    grid = dictionary.grid
    terms = plan.terms(grid.dim, one.history, stage)
    only = one.history if one.history < plan.history else None
    normal = Normal()
    width = (len(terms) + 4) * (2**grid.dim if plan.dealiased else 1)
    for fields, target, t in paths.blocks(grid, one.history, only, most_rows, width):
        if dictionary.frame is not None:
            target = dictionary.frame.move(target, -dictionary.frame.shift(fields["u"], fields["w"]))
            fields = dictionary.frame.aligned(fields)
        inner = one.predictions(dictionary, fields, t)
        normal.add(dictionary.columns(terms, inner, t), target)
    return System(terms, normal, grid.spectral_shape, paths.silent)
