"""Step: a regression of the map from one frame to the next. It has no neural network and does not know the equation.

    F[u_{n+1}](k) = sum_j c_j(k) F[phi_j(u_n, dw_{n+1})](k)        least squares, one small system for each mode k

phi_j are products of u, of its derivatives and of dw (`dictionary`), F is the grid's own transform. c is fitted on the
training part (`normal`, `fit`). The terms, the form of products and derivatives, the number of earlier frames and of
stages, whether the frame moves (`frame`) and the ridge are chosen on the validation part, by the error of whole
rolled-out paths (`choose`). A prediction is a rollout from u_0 (`rollout`). If every frame of the solver and all of its
noise are stored, this finds the solver's own step.

On a task with seen=K below J the step explains only a part of u_{n+1}. Then the law of the residual is fitted too
(`residual`), step and law are chosen by proper scores (`ensemble`), and `sample` adds a drawn residual in every step: a
linear inverse model of climate science with a nonlinear dictionary. The point prediction is the step without residuals.

Memory: at most 512 MiB of training and 128 MiB of validation paths are kept (the first that fit), blocks of 48 MiB of
columns, and 16 bytes x terms^2 x modes for the normal equations. On phi43 with all 257 frames the process peaks at
2 GiB, however many samples there are.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from spdebench import spec
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.models.base import Config, Features, OperatorModel
from spdebench.models.step.choose import Sizes, training_and_validation
from spdebench.models.step.ensemble import LawChoice, LawSearch, draw_members
from spdebench.models.step.fit import Plan
from spdebench.models.step.one_step import StepSearch
from spdebench.models.step.regrid import regrid
from spdebench.models.step.report import bootstrap, shown_modes
from spdebench.models.step.residual import Kind, Residual, packed, unpacked
from spdebench.models.step.rollout import Map, Paths, Stage, Stepper
from spdebench.tasks import Batch, Setting

TRAIN_BYTES, VAL_BYTES = 1 << 29, 1 << 27
"""The most bytes of paths that are kept for the regression and for the choice."""
SAMPLE_BYTES = 1 << 28
"""The most bytes of members that are drawn at a time."""
RESIDUAL = ("residual_modes", "residual_tables")
"""The buffers of the law of the residual."""


@dataclass(frozen=True, kw_only=True)
class StepConfig(Config):
    """Upper bounds of the search."""

    rows: int = 50_000  # pairs (sample, frame) of the final regression
    stages: int = 3
    history: int = 3  # earlier frames

    may_be_zero: ClassVar[tuple[str, ...]] = ("history",)


class StepModel(OperatorModel, name="step"):
    """Regression of u_{n+1} on products of u_n and dw_{n+1}, mode by mode, without a network or the equation."""

    title = "step"
    config_class = StepConfig
    dims = (1, 2, 3)
    trainable = False
    streams = True
    causal = True
    any_grid = True
    any_horizon = True
    cost_depends_on_fit = True
    generative = True  # on tasks with unseen noise

    config: StepConfig
    found: Tensor
    weights: Tensor
    envelope: Tensor
    intervals: Tensor
    residual_modes: Tensor  # only on tasks with unseen noise
    residual_tables: Tensor

    def __init__(self, setting: Setting, config: StepConfig) -> None:
        super().__init__(setting, config)
        dtype = torch.complex128 if setting.grid.periodic else torch.float64
        self.register_buffer("found", torch.zeros(0, dtype=torch.uint8))  # what was chosen, as JSON
        self.register_buffer("weights", torch.zeros(0, dtype=dtype))
        self.register_buffer("envelope", torch.zeros(0, dtype=torch.float64))
        self.register_buffer("intervals", torch.zeros(0, dtype=dtype))
        if setting.partial:
            self.register_buffer("residual_modes", torch.zeros(0, dtype=dtype))
            self.register_buffer("residual_tables", torch.zeros(0, dtype=torch.float64))
        self._steppers: dict[tuple[Any, ...], Stepper] = {}

    def prepare(self, batch: Batch) -> Features:
        return {"u0": batch.u0, "dw": batch.dw}

    # --- fitting --------------------------------------------------------------------------------------------------
    def calibrate(self, features: Features, target: Tensor) -> None:
        """Fit and choose on one set of samples, a quarter of which is used for validation."""
        self._fit(*training_and_validation(Paths(target, features["dw"])))

    def calibrate_stream(
        self, train: Iterable[tuple[Features, Tensor]], val: Iterable[tuple[Features, Tensor]]
    ) -> float | None:
        """Fit on the training part, choose on the validation part, and return the validation error of the choice."""
        paths, checks = _kept(train, TRAIN_BYTES), _kept(val, VAL_BYTES)
        assert paths is not None, "the training part is empty"
        return self._fit(paths, checks) if checks is not None else self._fit(*training_and_validation(paths))

    def _fit(self, train: Paths, val: Paths) -> float:
        """Search for the best plan, store what was found in the buffers, and return its validation error."""
        grid, config = self.setting.grid, self.config
        sizes = Sizes.of(grid, train.frames, config.rows)
        search_class = LawSearch if self.setting.partial else StepSearch
        search = search_class(grid, train, val, sizes, most_stages=config.stages, most_history=config.history)
        choice = search.run()
        content: dict[str, Any] = {
            "plan": spec.to_dict(choice.plan),
            "largest": search.limits[1],
            "error": choice.error,
            "notes": search.notes,
            "tried": [[plan.label, error] for plan, error in search.tried.items()],
        }
        if isinstance(search, LawSearch) and isinstance(choice, LawChoice):
            self.residual_modes, self.residual_tables = packed(choice.residual)
            content |= {"residual": dataclasses.asdict(choice.residual.kind), "laws": search.laws}
        maps = choice.stepper.maps
        self.weights = torch.cat([stage.weights.flatten() for one in maps for stage in one.stages])
        self.envelope = search.limits[0]
        self.intervals = bootstrap(choice.plan, maps[-1], search.train, grid, sizes.final_rows)
        text = json.dumps(content).encode()
        self.found = torch.frombuffer(bytearray(text), dtype=torch.uint8).to(self.weights.device)
        self._steppers = {}
        return choice.error

    # --- what was found -------------------------------------------------------------------------------------------
    @property
    def description(self) -> dict[str, Any]:
        """The chosen plan, its error on validation, the plans that were tried, and notes on those that diverged."""
        return dict(spec.loads(bytes(self.found.cpu().tolist()), allow_nan=True)) if len(self.found) else {}

    @property
    def plan(self) -> Plan:
        """The chosen plan; before a fit the plan with which the search begins."""
        if not len(self.found):
            return Plan()
        plan = spec.build(Plan, self.description["plan"], "the chosen plan")
        if not (1 <= plan.stages <= self.config.stages and 0 <= plan.history <= self.config.history):
            raise ValueError(f"{plan.stages} stages and {plan.history} earlier frames are beyond the configuration")
        grid = self.setting.grid
        if plan.velocity and not (grid.periodic and len(plan.velocity) == 2 * grid.dim):
            raise ValueError(f"{len(plan.velocity)} velocities of a moving frame on a {grid.boundary} grid")
        return plan

    def residual(self) -> Residual:
        """The law of the part of u_{n+1} that the step does not explain; before a fit that part is 0."""
        if not self.setting.partial:
            raise UserError("all of the noise is given to the model, and its step has no random part; use seen=K")
        maps, dtype = self.plan.history + 1, self.weights.dtype
        if not len(self.found):
            zero = torch.zeros(maps, 3, *self.setting.grid.spectral_shape, dtype=dtype, device=self.weights.device)
            return unpacked(self.setting.grid, Kind(), maps, zero, self.residual_tables)
        kind = spec.build(Kind, self.description["residual"], "the law of the residual")
        return unpacked(self.setting.grid, kind, maps, self.residual_modes, self.residual_tables)

    def coefficients(self) -> dict[str, Tensor]:
        """c_j(k) by the name of the term: those of the first stage, a regression on u_n and dw_{n+1} alone."""
        stage = self.stepper().maps[-1].stages[0]
        return {term.name: weight for term, weight in zip(stage.terms, stage.weights, strict=True)}

    def coefficient_intervals(self) -> dict[str, Tensor]:
        """(2, modes): 95 % bootstrap intervals over samples, at the modes that `shown_modes` names."""
        terms = self.stepper().maps[-1].stages[0].terms
        shape = (len(terms), 2, len(shown_modes(self.setting.grid)))
        return {t.name: v for t, v in zip(terms, self.intervals.reshape(shape), strict=True)}

    def stepper(self, grid: Grid | None = None) -> Stepper:
        """The learned step on the grid of the training data, or on another grid of the same box."""
        grid = grid or self.setting.grid
        key = grid.points, self.weights.device, id(self.weights)
        if key not in self._steppers:
            self._steppers = {key: self._build(grid)}
        return self._steppers[key]

    def _build(self, grid: Grid) -> Stepper:
        """The step with the coefficients in the buffers, on a grid."""
        if not len(self.found):
            return self._unfitted(grid)
        plan, own = self.plan, self.setting.grid
        maps, start = [], 0
        for history in range(plan.history + 1):
            one = Map(history)
            for stage in range(1, plan.stages + 1):
                terms = plan.terms(own.dim, history, stage)
                shape = (len(terms), *own.spectral_shape)
                weights = self.weights[start : start + torch.Size(shape).numel()].reshape(shape)
                start += weights.numel()
                one.stages.append(Stage(terms, regrid(weights, terms, own, grid)))
            maps.append(one)
        envelope = regrid(self.envelope.reshape(1, *own.spectral_shape), (), own, grid)[0]
        dictionary = plan.dictionary(grid, self.weights.device)
        return Stepper(dictionary, maps, envelope, self.description["largest"], self.setting.frames - 1, plan.bounded)

    def _unfitted(self, grid: Grid) -> Stepper:
        """The step u_{n+1} = u_n with the cost of a fitted step, for measuring the time before anything is fitted."""
        plan = self.plan
        terms = plan.terms(grid.dim, 0, 1)
        weights = torch.zeros(len(terms), *grid.spectral_shape, dtype=self.weights.dtype, device=self.weights.device)
        weights[0] = 1.0
        envelope = torch.full(grid.spectral_shape, torch.inf, dtype=torch.float64, device=weights.device)
        dictionary, maps = plan.dictionary(grid, weights.device), [Map(0, [Stage(terms, weights)])]
        return Stepper(dictionary, maps, envelope, torch.inf, self.setting.frames - 1)

    # --- prediction -----------------------------------------------------------------------------------------------
    def forward(self, features: Features) -> Tensor:
        u0, dw = features["u0"], features["dw"]
        grid = self.setting.grid.with_points(tuple(u0.shape[1:]))
        stepper = self.stepper(grid)
        return stepper.rollout(u0, stepper.known_noise(dw)).to(u0.dtype)

    def sample(
        self, batch: Batch, members: int, seed: int = 0, first: int = 0, samples: Tensor | None = None
    ) -> Tensor:
        """Rollouts with drawn residuals; where all of the noise is seen every member is the prediction."""
        if not self.setting.partial:
            return self.predict(batch)[:, None].expand(-1, members, *batch.dw.shape[1:])
        batch, numbers = batch.to(self.device), torch.arange(len(batch)) if samples is None else samples
        stepper = self.stepper(self.setting.grid.with_points(tuple(batch.u0.shape[1:])))
        residual, dw = self.residual(), stepper.known_noise(batch.dw)
        out = torch.empty((len(batch), members, *batch.dw.shape[1:]), dtype=batch.u0.dtype, device=self.device)
        size = max(1, SAMPLE_BYTES // (16 * max(1, batch.dw.numel())))
        with torch.inference_mode():
            for start in range(0, members, size):
                chosen = range(first + start, first + min(members, start + size))
                drawn = draw_members(stepper, residual, batch.u0, dw, chosen, seed, numbers)
                out[:, start : start + len(chosen)] = drawn
        return out

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Give the buffers the shapes of the loaded ones, which depend on the chosen plan."""
        for name in ("found", "weights", "envelope", "intervals", *(RESIDUAL if self.setting.partial else ())):
            value = state_dict.get(prefix + name)
            if isinstance(value, Tensor):
                setattr(self, name, getattr(self, name).new_empty(value.shape))
        self._steppers = {}
        super()._load_from_state_dict(state_dict, prefix, *args)
        try:
            self.stepper()
            if self.setting.partial:
                self.residual()
        except (UserError, ValueError, KeyError, TypeError, RuntimeError, AttributeError) as error:
            raise RuntimeError(f"the coefficients do not fit what was chosen ({error})") from None


def _kept(chunks: Iterable[tuple[Features, Tensor]], most: int) -> Paths | None:
    """The first samples of a part, at most ``most`` bytes but at least three samples; None if the part is empty."""
    us: list[Tensor] = []
    dws: list[Tensor] = []
    bytes_left = most
    for features, target in chunks:
        per_sample = target[0].nbytes + features["dw"][0].nbytes
        count = min(len(target), max(bytes_left // per_sample, 3 - sum(map(len, us))))
        us.append(target[:count])
        dws.append(features["dw"][:count])
        bytes_left -= count * per_sample
        if bytes_left < per_sample and sum(map(len, us)) >= 3:
            break
    return Paths(torch.cat(us), torch.cat(dws)) if us else None
