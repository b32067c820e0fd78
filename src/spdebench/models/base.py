"""What a model is: parameter-free features of the inputs, computed once (`prepare`), then a network (`forward`).

    u = model(model.prepare(batch)),   batch: u0 (B X..), dw (B T X..),   u: (B T X..), all frames t_0..t_T

A model file opens with its formula and declares one frozen dataclass, its configuration, and one class; declaring the
class registers it. ``calibrate`` is called once, with features and targets of the training part only, before training:
it fits what is not learned by gradients (scales of channels, normalisers; for the baselines everything).
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from spdebench import spec
from spdebench.errors import UserError
from spdebench.registry import Registry
from spdebench.tasks import Batch, Setting, Task, recommended

if TYPE_CHECKING:
    from collections.abc import Sequence

Features = dict[str, Tensor]
"""Tensors by name, each with the samples along its first axis."""


def _builtin() -> None:
    import spdebench.models  # noqa: F401  (its import declares the package's own models)


MODELS: Registry[OperatorModel] = Registry("model", "models", _builtin)


@dataclass(frozen=True, kw_only=True)
class Config:
    """Base of all configurations: frozen, every field a plain value, so that it is part of a run's identity.

    Whole numbers are sizes, 1 or more; ``may_vanish`` names those that may be 0.
    """

    may_vanish: ClassVar[tuple[str, ...]] = ("padding",)

    def __post_init__(self) -> None:
        spec.check(self, type(self).__name__)
        for key in spec.fields_of(type(self)):
            value, least = getattr(self, key), int(key not in self.may_vanish)
            for number in value if isinstance(value, tuple) else (value,):
                if isinstance(number, int) and not isinstance(number, bool) and number < least:
                    raise UserError(f"{type(self).__name__}: {key} must be at least {least}, got {value}")


class OperatorModel(nn.Module):
    """Base of all models. Class attributes say what a model can do; ``supports`` checks a setting against them."""

    name: ClassVar[str]
    title: ClassVar[str]  # as the paper prints it
    config_class: ClassVar[type[Config]] = Config
    dims: ClassVar[tuple[int, ...]] = (1,)
    inputs: ClassVar[tuple[str, ...]] = ("xi", "u0+xi")
    ours: ClassVar[tuple[str, ...]] = ()  # inputs that the paper leaves out for this model
    equations: ClassVar[tuple[str, ...] | None] = None  # None: any
    needs_equation: ClassVar[bool] = False  # whether prepare or the network must know the equation
    causal: ClassVar[bool] = False  # u(t) uses noise up to t only; measured by a contract test
    any_grid: ClassVar[bool] = False  # can predict on another grid than it was trained on
    trainable: ClassVar[bool] = True  # False: calibrate is all of the training
    costly_features: ClassVar[bool] = False  # worth keeping on disk between runs

    def __init_subclass__(cls, name: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name is not None:
            cls.name = name
            MODELS.add(name, cls)

    def __init__(self, setting: Setting, config: Config) -> None:
        super().__init__()
        self.supports(setting)
        self.setting, self.config = setting, config

    # --- what a model supplies ------------------------------------------------------------------------------------
    @abstractmethod
    def prepare(self, batch: Batch) -> Features:
        """Parameter-free features of a batch, on the batch's device; called once a sample, then cached."""

    @abstractmethod
    def forward(self, features: Features) -> Tensor:
        """u (B T X..) from features."""

    def calibrate(self, features: Features, target: Tensor) -> None:
        """Fit buffers on the training part; nothing by default."""

    @classmethod
    def largest_modes(cls, setting: Setting) -> tuple[int, ...] | None:
        """The largest ``modes`` that a grid carries, in the model's own way of counting; None: it has no modes."""
        return None

    def feature_spec(self) -> dict[str, Any]:
        """The part of the configuration that `prepare` depends on: names the file in which features are kept."""
        return {}

    # --- what they all do -----------------------------------------------------------------------------------------
    @classmethod
    def supports(cls, setting: Setting) -> None:
        """One clear line unless this model can work with such data."""
        what = setting.label
        if setting.dim not in cls.dims:
            fit = ", ".join(n for n in MODELS if setting.dim in MODELS[n].dims) or "none"
            raise UserError(
                f"model '{cls.name}' works in {_numbers(cls.dims)} space dimension{'s' * (cls.dims != (1,))}; "
                f"{what} has {setting.dim}. Models for {setting.dim}-D: {fit}"
            )
        if setting.inputs not in cls.inputs:
            fit = ", ".join(n for n in MODELS if setting.inputs in MODELS[n].inputs) or "none"
            raise UserError(f"model '{cls.name}' takes {' or '.join(cls.inputs)}; {setting.inputs} goes with: {fit}")
        if cls.equations is not None and (setting.equation is None or setting.equation.name not in cls.equations):
            fit = ", ".join(n for n in MODELS if n != cls.name and MODELS[n].equations is None) or "none"
            raise UserError(
                f"model '{cls.name}' is for {', '.join(cls.equations)}; this is {what}. Models for it: {fit}"
            )
        if cls.needs_equation and setting.equation is None:
            raise UserError(
                f"model '{cls.name}' must know the equation and imported data do not tell it; "
                f"give it to the task: Task(..., equation=sb.equation(...))"
            )

    @classmethod
    def configure(cls, setting: Setting, values: Mapping[str, Any]) -> Config:
        """The configuration: given values over the recommended ones for this data over the class's defaults.

        Recommended modes are cut to what the grid carries; given ones must fit.
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
                raise UserError(f"model {cls.name}: modes {modes} do not fit the grid; at most {top} here")
        return config

    @property
    def device(self) -> torch.device:
        return next((t.device for t in (*self.parameters(), *self.buffers())), torch.device("cpu"))

    def predict(self, batch: Batch) -> Tensor:
        """u for a batch, in evaluation mode and without gradients; the batch may be on any device."""
        was = self.training
        self.eval()
        try:
            with torch.inference_mode():
                out: Tensor = self(self.prepare(batch.to(self.device)))
                return out
        finally:
            self.train(was)

    def counts(self) -> dict[str, int]:
        """``parameters``: a complex number counts once, as in the paper; ``real``: it counts twice."""
        trained = [p for p in self.parameters() if p.requires_grad]
        return {
            "parameters": sum(p.numel() for p in trained),
            "real": sum(p.numel() * (2 if p.is_complex() else 1) for p in trained),
        }


def build(name: str, task: Task | Setting, **config: Any) -> OperatorModel:
    """The model called ``name`` for a task, the paper's settings for this data unless given otherwise."""
    setting = task if isinstance(task, Setting) else task.setting
    cls = MODELS[name]
    cls.supports(setting)
    return cls(setting, cls.configure(setting, config))


def _numbers(values: Sequence[int]) -> str:
    return " or ".join(map(str, values))
