"""Estimates the time of a run from finished runs.

    seconds of a run = (seconds per epoch and million numbers) x (million numbers of its training part) x (epochs)

and with loss=energy times the number of draws.

The rate is the median over finished runs of the same model on the same kind of device that did not share it: with the
same configuration and equation if there are any, else on the same equation, else on any. Where there is no record the
rate comes from `rates.csv`, whose rows hold for one configuration or, where none is given, for all.
The rows of flow-fno on cuda are those of fno, whose layers it has.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

from spdebench.errors import UserError
from spdebench.models import MODELS
from spdebench.paper.base import AnySpec, dataset_of
from spdebench.records import Record, Records
from spdebench.spec import build, canonical_json
from spdebench.tasks import TaskSpec
from spdebench.training import RunSpec

SHARE = 0.5  # of the allowed epochs that a run is assumed to take before it stops early
SHARING = 0.75  # of its time that a run takes longer for each further run on its GPU
ONCE = 5.0  # seconds that a model without training is assumed to take


def slowdown(runs: int, device: str = "cuda") -> float:
    """1 + 0.75 (k - 1): how much longer a run takes while k runs share its GPU.

    Measured on an H200 with its multi-process service: six runs side by side took 3.7 to 5.6 times as long each, so
    that six together gain a factor of 1.1 to 1.6 over one after the other. On processors runs do not share a core.
    """
    return 1 + SHARING * (runs - 1) if device.startswith("cuda") else 1.0


@cache
def _committed() -> tuple[dict[str, str], ...]:
    text = (resources.files("spdebench.campaign") / "rates.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def volume(datasets: Iterable[Mapping[str, Any]], task: Mapping[str, Any]) -> float:
    """Million numbers (samples x frames x points) of the training part."""
    chosen = build(TaskSpec, {k: v for k, v in task.items() if k != "equation"}, "task")
    total = 0.0
    for values in datasets:
        if "fields" not in values:  # imported data: they do not enter the paper's tables
            continue
        spec = dataset_of(values)
        train = (chosen.n or spec.n) * chosen.weights[0] // sum(chosen.weights)
        frames, *points = spec.shape
        total += train * (1 + (frames - 1) // chosen.every) * math.prod(n // chosen.stride for n in points)
    return total / 1e6


def draws(options: Mapping[str, Any]) -> int:
    """How often each sample passes through the network in an epoch: once, or with loss=energy for each draw."""
    return int(options.get("draws", 2)) if options.get("loss") == "energy" else 1


class Rates:
    """Seconds per epoch and million numbers, and the share of the allowed epochs that runs take."""

    def __init__(self, records: Records, device: str = "cpu") -> None:
        kind = device.partition(":")[0]
        self._rates: dict[tuple[str, ...], list[float]] = defaultdict(list)
        self._shares: dict[tuple[str, ...], list[float]] = defaultdict(list)
        self._once: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for record in records.values():
            if (record.provenance.device or "").startswith(kind):
                self._learn(record)
        for row in _committed():
            if row["device"] == kind:
                self._default(row)

    def _learn(self, record: Record) -> None:
        try:
            size = max(volume(record.datasets, record.task), 1e-9)
        except UserError:  # of an equation that is not declared here
            return
        allowed = record.options.get("epochs")
        for key in _keys(record.model, record.datasets, record.config):
            if record.model not in MODELS and record.measuring_seconds is not None:
                self._once[key].append(record.measuring_seconds / size)
            if record.epochs and record.training_seconds is not None and not record.shared_device:
                self._rates[key].append(record.training_seconds / record.epochs / size / draws(record.options))
            if record.epochs and isinstance(allowed, int) and allowed > 0:
                self._shares[key].append(record.epochs / allowed)

    def _default(self, row: Mapping[str, str]) -> None:
        """A rate from `rates.csv`, if there is no record; the first row that matches."""
        for key in _known_as(row["model"], row["equation"], row["config"])[0 if row["config"] else 1 :]:
            if not self._rates.get(key):
                self._rates[key] = [float(row["seconds"]) / float(row["million"])]

    def _median(self, table: Mapping[tuple[str, ...], list[float]], run: AnySpec, default: float) -> float:
        for key in _keys(run.model, run.datasets, getattr(run, "config", {})):
            if table.get(key):
                return statistics.median(table[key])
        return default

    def epochs(self, run: AnySpec) -> float:
        """About how many epochs a run will take."""
        allowed = getattr(run, "options", {}).get("epochs", 0)
        if getattr(run, "options", {}).get("stop") == 0:  # it never stops early
            return float(allowed)
        return self._median(self._shares, run, SHARE) * float(allowed)

    def seconds(self, run: AnySpec) -> float:
        """About how long a run takes from the start."""
        size = volume(run.datasets, run.task)
        if not isinstance(run, RunSpec):
            return max(1.0, self._median(self._once, run, ONCE / 10) * size)
        if not run.options["epochs"]:
            return ONCE
        every = [rate for key, rates in self._rates.items() if len(key) == 1 for rate in rates]
        default = statistics.median(every) if every else 1.0
        return self._median(self._rates, run, default) * size * self.epochs(run) * draws(run.options)


def _keys(model: str, datasets: Iterable[Mapping[str, Any]], config: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Keys of similar runs, from the most similar to the least similar."""
    return _known_as(model, str(next(iter(datasets)).get("equation")), canonical_json(dict(config)))


def _known_as(model: str, equation: str, config: str) -> list[tuple[str, ...]]:
    return [(model, equation, config), (model, equation), (model,)]
