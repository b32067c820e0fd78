"""How much work a run is: the numbers of its training part, and what one epoch of them costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from spdebench.data.identity import dataset_of
from spdebench.spec import build
from spdebench.tasks import TaskSpec
from spdebench.training.provenance import device_type

STEP_START = 0.1  # million numbers that take as long as the start of one training step does on a GPU
DEFAULT_BATCH = 20  # samples of a training step, if the options do not state it


def training_part(datasets: Iterable[Mapping[str, Any]], task: Mapping[str, Any]) -> tuple[int, float]:
    """Samples of the training part, and their million numbers (samples x frames x points)."""
    chosen = build(TaskSpec, {k: v for k, v in task.items() if k != "equation"}, "task")
    samples, numbers = 0, 0
    for values in datasets:
        if "fields" not in values:  # imported data: they do not enter the paper's tables
            continue
        spec = dataset_of(values)
        train = (chosen.n or spec.n) * chosen.weights[0] // sum(chosen.weights)
        frames, *points = spec.shape
        numbers += train * (1 + (frames - 1) // chosen.every) * math.prod(n // chosen.stride for n in points)
        samples += train
    return samples, numbers / 1e6


def space_dimensions(datasets: Iterable[Mapping[str, Any]]) -> int:
    """The largest number of space dimensions of the datasets; 0 if none of them was generated."""
    return max((len(dataset_of(values).shape) - 1 for values in datasets if "fields" in values), default=0)


def million_numbers(datasets: Iterable[Mapping[str, Any]], task: Mapping[str, Any]) -> float:
    """Million numbers of the training part."""
    return training_part(datasets, task)[1]


def epoch_cost(samples: int, numbers: float, options: Mapping[str, Any], device: str) -> float:
    """What an epoch costs, in million numbers: those that pass the network, and on a GPU `STEP_START` for each step."""
    steps = math.ceil(samples / _count(options, "batch", DEFAULT_BATCH))
    return draws(options) * (numbers + (STEP_START * steps if device_type(device) == "cuda" else 0.0))


def draws(options: Mapping[str, Any]) -> int:
    """How often each sample passes through the network in an epoch: once, or with loss=energy for each draw."""
    return _count(options, "draws", 2) if options.get("loss") == "energy" else 1


def _count(options: Mapping[str, Any], name: str, default: int) -> int:
    """An option that is a positive whole number; the default if it is missing or, in a forged record, anything else."""
    value = options.get(name)
    return value if type(value) is int and 0 < value < 1 << 31 else default


def step_numbers(datasets: Iterable[Mapping[str, Any]], task: Mapping[str, Any], options: Mapping[str, Any]) -> float:
    """Million numbers that pass the network in one training step."""
    samples, numbers = training_part(datasets, task)
    return draws(options) * numbers * min(1.0, _count(options, "batch", DEFAULT_BATCH) / max(1, samples))
