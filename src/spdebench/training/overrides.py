"""``key=value`` arguments of a command, matched by name to the task, the model's configuration and the training."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spdebench import spec
from spdebench.errors import UserError, unknown
from spdebench.models import MODELS
from spdebench.tasks import TaskSpec
from spdebench.training.options import TrainOptions

SPLIT_SEED = "split_seed"  # the seed of the task's split; ``seed`` is that of the training


@dataclass
class Overrides:
    """Values for the task, for the model's configuration and for the training."""

    task: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


def _names(model: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Fields of the task, of the model's configuration and of the training, with their types."""
    task = {SPLIT_SEED if k == "seed" else k: v for k, v in spec.fields_of(TaskSpec).items()}
    return task, spec.fields_of(MODELS[model].config_class), spec.fields_of(TrainOptions)


def _current(model: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values under the current option names; a current name is never interpreted as an old one."""
    taken = {name for names in _names(model) for name in names}
    old = {**spec.renamed(MODELS[model].config_class), **spec.renamed(TrainOptions)}
    return spec.current_names(values, {k: v for k, v in old.items() if k not in taken}, f"model {model}")


def sort_overrides(model: str, values: Mapping[str, Any]) -> Overrides:
    """Sort values by the names of the fields; an unknown name is a one-line error with the nearest known name."""
    task, config, options = _names(model)
    out = Overrides()
    for key, value in _current(model, values).items():
        owners = [group for group in (task, config, options) if key in group]
        if not owners:
            raise unknown("key", key, [*task, *config, *options])
        if len(owners) > 1:
            raise UserError(f"'{key}' is a field of the model and of the training; set it from Python")
        if key == SPLIT_SEED:
            if spec.decode(value, int, f"task: {key}") < 0:  # checked here, where its name is the one that was typed
                raise UserError(f"task: {key} must not be negative, got {value}")
            out.task["seed"] = value
        elif key in task:
            out.task[key] = value
        else:
            (out.config if key in config else out.options)[key] = value
    return out


def alternatives(model: str, values: Mapping[str, str]) -> dict[str, list[str]]:
    """``learning_rate=1e-3,1e-2`` -> two values; values that are lists are separated by /: ``modes=8,8/16,16``."""
    task, config, options = _names(model)
    hints = {**task, **config, **options}
    out = {}
    for key, text in _current(model, values).items():
        listed = typing.get_origin(hints.get(key)) is tuple
        out[key] = [part.strip() for part in text.split("/" if listed else ",") if part.strip()]
        if not out[key]:
            raise UserError(f"{key}: no value in '{text}'")
    return out


def as_arguments(values: Mapping[str, Any]) -> str:
    """The values as a user types them: ``width=8 modes=8,8``."""

    def text(value: Any) -> str:
        return ",".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)

    return " ".join(f"{key}={text(value)}" for key, value in values.items())
