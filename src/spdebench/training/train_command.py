"""The command that trains the run of a record again; all settings that differ from the current defaults are written
out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from spdebench import spec
from spdebench.data.identity import from_dict as dataset_from_dict
from spdebench.errors import UserError
from spdebench.models import MODELS
from spdebench.records import Record
from spdebench.tasks import TaskSpec
from spdebench.training.identity import plan
from spdebench.training.options import TrainOptions
from spdebench.training.overrides import SPLIT_SEED, as_arguments


def train_command(record: Record) -> str | None:
    """``spdebench train MODEL data/FILE key=value ...``; None if no command trains the run.

    There is none for imported data, for a model or an equation that is not declared, and for weights given from Python.
    """
    if record.initial:
        return None
    try:
        datasets = [dataset_from_dict(dict(each)) for each in record.datasets]
        if not datasets:
            return None
        default = plan(record.model, datasets)
    except UserError:
        return None
    task = _changed(TaskSpec, record.task, default.task)
    inputs = ["--inputs", task.pop("inputs")] if "inputs" in task else []
    given = {
        **{SPLIT_SEED if key == "seed" else key: value for key, value in task.items()},
        **_changed(MODELS[record.model].config_class, record.config, default.config),
        **_changed(TrainOptions, record.options, default.options),
    }
    first, *others = [f"data/{each.file_name}" for each in datasets]
    mixed = [word for file in others for word in ("--mix", file)]
    return shlex.join(["spdebench", "train", record.model, first, *as_arguments(given).split(), *inputs, *mixed])


def _changed(cls: type, stored: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
    """The stored values that are not the default, by the names that a user types."""
    return names_of(cls, {key: value for key, value in stored.items() if default.get(key) != value})


def names_of(cls: type, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Stored values by the names that a user types; ``cls`` is the dataclass that they belong to."""
    names = {key: name for name, key in spec.keys_of(cls).items()}
    return {names.get(key, key): value for key, value in stored.items()}
