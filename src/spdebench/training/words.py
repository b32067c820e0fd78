"""``key=value`` words of a command, given to the task, the model's configuration and the training by their names."""

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

SPLIT_SEED = "split_seed"  # the task's seed; ``seed`` alone is that of the training


@dataclass
class Request:
    """Values by whom they are for."""

    task: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


def _names(model: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Fields of the task, of the model's configuration and of the training, with their types."""
    task = {SPLIT_SEED if k == "seed" else k: v for k, v in spec.fields_of(TaskSpec).items()}
    config: type = MODELS[model].config_class
    return task, spec.fields_of(config), spec.fields_of(TrainOptions)


def sort_words(model: str, values: Mapping[str, Any]) -> Request:
    """Each value to whom its name belongs; a name that nobody has is one line with the nearest that somebody has."""
    task, config, options = _names(model)
    out = Request()
    for key, value in values.items():
        owners = [group for group in (task, config, options) if key in group]
        if not owners:
            raise unknown("key", key, [*task, *config, *options])
        if len(owners) > 1:
            raise UserError(f"'{key}' is a field of the model and of the training; set it from Python")
        if key in task:
            out.task["seed" if key == SPLIT_SEED else key] = value
        else:
            (out.config if key in config else out.options)[key] = value
    return out


def alternatives(model: str, values: Mapping[str, str]) -> dict[str, list[str]]:
    """``lr=1e-3,1e-2`` -> two values; those of a list-valued key are divided by /: ``modes=8,8/16,16``."""
    task, config, options = _names(model)
    hints = {**task, **config, **options}
    out = {}
    for key, text in values.items():
        listed = typing.get_origin(hints.get(key)) is tuple
        out[key] = [word.strip() for word in text.split("/" if listed else ",") if word.strip()]
        if not out[key]:
            raise UserError(f"{key}: no value in '{text}'")
    return out


def as_words(values: Mapping[str, Any]) -> str:
    """Back to what a user types."""

    def text(value: Any) -> str:
        return ",".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)

    return " ".join(f"{key}={text(value)}" for key, value in values.items())
