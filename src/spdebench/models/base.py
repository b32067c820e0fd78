"""The interface of models.

    u = model(model.prepare(batch)),   batch: u0 (B X..), dw (B T X..),   u: (B T X..), all frames t_0..t_T

`prepare` computes features without parameters, once per sample. `forward` is the network. `calibrate` is called once
before training, with features and targets of the training part; it fits what is not learned by gradients (scales and
normalisers; for the baselines everything). A model's file starts with its formula and declares one configuration (a
frozen dataclass) and one model class; declaring the class registers it.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from spdebench import spec
from spdebench.errors import UserError
from spdebench.noise.unseen import UnseenNoise, fill_states
from spdebench.registry import Registry
from spdebench.tasks import TASK_TEXT, Batch, Inputs, Setting, Task, recommended

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDTH = 64  # assumed number of channels per output value, for choosing the batch size of evaluation

Features = dict[str, Tensor]
"""Tensors by name; the first axis of each is the samples."""


def _builtin() -> None:
    import spdebench.models  # noqa: F401  (its import declares the package's own models)


MODELS: Registry[OperatorModel] = Registry("model", "models", _builtin)


@dataclass(frozen=True, kw_only=True)
class Config:
    """Base of all configurations: a frozen dataclass of plain values, which is part of a run's spec.

    Integers are sizes and must be at least 1; those named in ``may_be_zero`` may be 0.
    """

    may_be_zero: ClassVar[tuple[str, ...]] = ("padding",)

    def __post_init__(self) -> None:
        spec.check(self, type(self).__name__)
        for key in spec.fields_of(type(self)):
            value, least = getattr(self, key), int(key not in self.may_be_zero)
            for number in value if isinstance(value, tuple) else (value,):
                if isinstance(number, int) and not isinstance(number, bool) and number < least:
                    raise UserError(f"{type(self).__name__}: {key} must be at least {least}, got {value}")


class OperatorModel(nn.Module):
    """Base of all models. Class attributes declare what a model can do; `supports` compares them with the data."""

    name: ClassVar[str]
    title: ClassVar[str]  # its name in tables; by default the name it is declared with
    config_class: ClassVar[type[Config]] = Config
    dims: ClassVar[tuple[int, ...]] = (1,)
    inputs: ClassVar[tuple[Inputs, ...]] = ("xi", "u0+xi")
    added_inputs: ClassVar[tuple[Inputs, ...]] = ()  # inputs that the paper does not use with this model
    needs_equation: ClassVar[bool] = False  # the features or the network depend on the equation
    causal: ClassVar[bool] = False  # u(t) depends only on noise up to t; a contract test measures it
    any_grid: ClassVar[bool] = False  # it can predict on a grid other than that of the training data
    any_horizon: ClassVar[bool] = False  # it can predict more frames than the training data have, at the same interval
    trainable: ClassVar[bool] = True  # False: calibrate fits the model, without gradient steps
    cost_depends_on_fit: ClassVar[bool] = False  # how long a prediction takes depends on what was fitted
    streams: ClassVar[bool] = False  # `calibrate_stream` fits the model chunk by chunk; data need not fit into memory
    costly_features: ClassVar[bool] = False  # features are worth caching on disk between runs
    redraws: ClassVar[bool] = True  # features are cheap enough to be computed again for each draw of the unseen noise
    law_loss: ClassVar[Literal["energy", "flow"]] = "energy"  # the loss with which a trainable model learns a law
    generative: ClassVar[bool] = False  # `sample` draws from a law that `calibrate` has fitted, without training

    learned_law = False  # whether this instance was trained with ``law_loss``, so that `sample` draws members

    def __init_subclass__(cls, name: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name is not None:
            cls.name = name
            cls.title = cls.__dict__.get("title", name)
            MODELS.add(name, cls)

    def __init__(self, setting: Setting, config: Config) -> None:
        super().__init__()
        self.supports(setting)
        self.setting, self.config = setting, config

    @classmethod
    def formula(cls) -> str:
        """The formula with which the model's file opens: after its name and a colon, or its first indented line.

        Where a file has several models, each has a line that begins with its name.
        """
        lines = (sys.modules[cls.__module__].__doc__ or "").splitlines() or [""]
        if ":  " in lines[0]:
            return lines[0].partition(":  ")[2].rstrip(".")
        formulas = [line.strip() for line in lines if line.startswith("    ")]
        own = [line.removeprefix(cls.name).strip() for line in formulas if line.split()[0] == cls.name]
        return next(iter(own or formulas), "").rstrip(",")

    # --- what a subclass defines ------------------------------------------------------------------------------------
    @abstractmethod
    def prepare(self, batch: Batch) -> Features:
        """Features that do not depend on parameters, on the batch's device; computed once per sample and then kept."""

    @abstractmethod
    def forward(self, features: Features) -> Tensor:
        """The prediction u (B T X..) from features."""

    def calibrate(self, features: Features, target: Tensor) -> None:
        """Fit buffers on the training part; by default there is nothing to fit."""

    def calibrate_stream(
        self, train: Iterable[tuple[Features, Tensor]], val: Iterable[tuple[Features, Tensor]]
    ) -> float | None:
        """Fit on chunks (features, target) of the training part and choose options on those of the validation part.

        Both may be iterated more than once. Returns the validation error of what was chosen, or None. Only called for
        models with ``streams``.
        """
        raise NotImplementedError(f"model '{self.name}' is not fitted chunk by chunk")

    def flow_pair(self, features: Features, u: Tensor, states: Tensor) -> tuple[Features, Tensor]:
        """(features, target) of loss=flow: a random time and state as further features, and the output wanted for them.

        Both are functions of ``states``, one state of the stream of random numbers per sample. Only called for models
        whose ``law_loss`` is "flow", after `calibrate`.
        """
        raise NotImplementedError(f"model '{self.name}' is not trained with loss=flow")

    @classmethod
    def largest_modes(cls, setting: Setting) -> tuple[int, ...] | None:
        """The largest ``modes`` that fit the grid, counted as the model does; None if it has no ``modes``."""
        return None

    def feature_spec(self) -> dict[str, Any]:
        """The part of the configuration that `prepare` depends on; it enters the name of the cache file."""
        return {}

    # --- what all models share ------------------------------------------------------------------------------------
    @classmethod
    def supports(cls, setting: Setting) -> None:
        """Raise `UserError` if this model cannot be used with data of this setting."""
        what = setting.label
        if setting.dim not in cls.dims:
            fit = ", ".join(n for n in MODELS if setting.dim in MODELS[n].dims) or "none"
            raise UserError(
                f"model '{cls.name}' works in {_numbers(cls.dims)} space dimension{'s' * (cls.dims != (1,))}; "
                f"{what} has {setting.dim}. Models for {setting.dim}-D: {fit}"
            )
        if setting.inputs not in cls.inputs:
            fit = ", ".join(n for n in MODELS if setting.inputs in MODELS[n].inputs) or "none"
            tasks = " or ".join(TASK_TEXT[each] for each in cls.inputs)
            raise UserError(
                f"model '{cls.name}' is for {tasks}, not for {TASK_TEXT[setting.inputs]}; models for that: {fit}"
            )
        if cls.needs_equation and setting.equation is None:
            raise UserError(
                f"model '{cls.name}' needs to know the equation, which imported data do not contain; "
                f"give it to the task: Task(..., equation=sb.equation(...))"
            )

    @classmethod
    def check_mixture(cls, settings: Sequence[Setting], config: Config) -> None:
        """Raise `UserError` if the model cannot be trained on samples of several equations together.

        ``settings`` has that of each dataset, at least two, on the same grid and times; the equation of each is known.
        """

    @classmethod
    def predicts_on(cls, other: Setting, trained: Setting) -> bool:
        """Whether a model that was trained on data of the setting ``trained`` can predict data of ``other``."""
        if other.dim != trained.dim or (other.frames != trained.frames and not cls.any_horizon):
            return False
        return other.grid.points == trained.grid.points or cls.any_grid

    @classmethod
    def configure(cls, setting: Setting, values: Mapping[str, Any]) -> Config:
        """The configuration: given ``values``, else those recommended for this data, else the defaults of the class.

        Recommended ``modes`` are reduced to what fits the grid; given ones must fit.
        """
        chosen = recommended(cls.name, setting).config
        top = cls.largest_modes(setting)
        config = spec.build(cls.config_class, {**chosen, **values}, f"model {cls.name}")
        if top is not None:
            modes: tuple[int, ...] = getattr(config, "modes")  # noqa: B009
            if "modes" not in values:
                if len(modes) != len(top):
                    modes = (*(modes[0],) * (len(top) - 1), modes[-1])
                config = dataclasses.replace(config, modes=tuple(min(a, b) for a, b in zip(modes, top, strict=True)))  # type: ignore[call-arg]
            elif len(modes) != len(top):
                raise UserError(f"model {cls.name}: modes must have {len(top)} entries (space, then time), got {modes}")
            elif any(m > b or m < 1 for m, b in zip(modes, top, strict=True)):
                raise UserError(f"model {cls.name}: modes {modes} do not fit the grid, which allows at most {top}")
        return config

    @property
    def device(self) -> torch.device:
        return next((t.device for t in (*self.parameters(), *self.buffers())), torch.device("cpu"))

    @property
    def draws_members(self) -> bool:
        """Whether `sample` draws members of the law of u given u0 and the seen noise."""
        return (self.generative or self.learned_law) and self.setting.partial

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Within this context the model is in evaluation mode and no gradients are computed."""
        training = self.training
        self.eval()
        try:
            with torch.inference_mode():
                yield
        finally:
            self.train(training)

    def predict(self, batch: Batch) -> Tensor:
        """u for a batch, in evaluation mode and without gradients; the batch may be on any device."""
        with self.evaluating():
            out: Tensor = self(self.prepare(batch.to(self.device)))
            check_output(out, tuple(batch.dw.shape), f"model '{self.name}'")
            return out

    def sample(
        self, batch: Batch, members: int, seed: int = 0, first: int = 0, samples: Tensor | None = None
    ) -> Tensor:
        """Members ``first``, .., ``first + members - 1`` of the law of u given u0 and the seen noise: (B, m, T, X..).

        Member i of sample s is a function of (seed, s, i); ``samples`` are the numbers s, by default 0..B-1, so that a
        batch that is split gives the same members. This method is for networks that were trained with loss=energy: it
        draws the noise modes that are not seen, with unit variance, and predicts. Models that are ``generative`` or
        have another ``law_loss`` define their own method.
        """
        return self.predict_with(self.setting.unseen(), batch, members, seed, first, samples)

    def predict_with(
        self,
        unseen: UnseenNoise,
        batch: Batch,
        members: int,
        seed: int = 0,
        first: int = 0,
        samples: Tensor | None = None,
        dt: float | None = None,
    ) -> Tensor:
        """Predictions for the noise of a batch plus draws of the ``unseen`` noise: (B, m, T, X..).

        ``dt`` is the time between frames of the batch, by default that of the training data.
        """

        def predicted(several: Batch, states: Tensor) -> Tensor:
            fill = unseen.draw(states, self.setting.frames - 1, self.setting.dt if dt is None else dt)
            return self.predict(replace(several, dw=several.dw + fill))

        return self.draw_members(batch, members, seed, first, samples, predicted)

    def draw_members(
        self,
        batch: Batch,
        members: int,
        seed: int,
        first: int,
        samples: Tensor | None,
        draw: Callable[[Batch, Tensor], Tensor],
    ) -> Tensor:
        """Members (B, m, T, X..) that ``draw(batch, states)`` computes a few at a time.

        ``states`` has one state of the stream of random numbers per row. The frame t_0 of every member is u0 itself.
        """
        shape = (len(batch), *self.setting.shape)
        if tuple(batch.dw.shape) != shape:
            raise UserError(
                f"model '{self.name}' draws members at the frames and points that it was trained on, dw {shape}; "
                f"got {tuple(batch.dw.shape)}"
            )
        device, numbers = self.device, torch.arange(len(batch)) if samples is None else samples
        batch = batch.to(device)
        out = torch.empty((members, *shape), device=device)
        size = max(1, evaluation_batch(self.setting.shape) // max(1, len(batch)))
        for start in range(0, members, size):
            drawn = range(start, min(start + size, members))
            states = torch.cat([fill_states(seed, numbers, first + member, device) for member in drawn])
            u = draw(batch.repeated(len(drawn)), states)
            out[start : start + len(drawn)] = u.unflatten(0, (len(drawn), len(batch)))
        out[:, :, 0] = batch.u0
        return out.transpose(0, 1)

    def counts(self) -> dict[str, int]:
        """Numbers of trained parameters: ``parameters`` counts complex ones once, as the paper does, ``real`` twice."""
        trained = [p for p in self.parameters() if p.requires_grad]
        return {
            "parameters": sum(p.numel() for p in trained),
            "real": sum(p.numel() * (2 if p.is_complex() else 1) for p in trained),
        }


def evaluation_batch(shape: tuple[int, ...]) -> int:
    """Batch size for evaluation of samples (T X..): 100 as in the paper, or fewer so that it needs at most 2 GB."""
    return max(1, min(100, (2 << 30) // (4 * WIDTH * math.prod(shape))))


def check_output(u: Any, expected: tuple[int, ...], what: str = "the model") -> None:
    """Raise a one-line error unless u has the shape (B T X..) of the solutions."""
    got = tuple(u.shape) if isinstance(u, Tensor) else type(u).__name__
    if got != expected:
        raise UserError(f"{what} must return u (B T X..) at all frames t_0..t_T, here {expected}; it returned {got}")


def model(name: str, task: Task | Setting, **config: Any) -> OperatorModel:
    """Build the model ``name`` for a task; settings that are not given are the paper's for this data."""
    setting = task if isinstance(task, Setting) else task.setting
    cls = MODELS[name]
    cls.supports(setting)
    return cls(setting, cls.configure(setting, config))


build = model
"""The former name of `model`."""


def _numbers(values: Sequence[int]) -> str:
    """'1 or 2 or 3'."""
    return " or ".join(map(str, values))
