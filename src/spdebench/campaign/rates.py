"""Estimates the time of a run from finished runs.

    seconds of training = rate x (million numbers of its training part + 0.1 x steps of an epoch) x epochs x slowdown

where on a GPU the start of a step costs as much as 0.1 million numbers, on a processor nothing; with loss=energy each
draw counts. Models without training and reference rows take a rate times the million numbers of their data.

A rate is the median over finished runs of the same model on the same kind of device: with the same configuration and
equation if there are any, else on the same equation, else in as many space dimensions, else on any. Runs that shared
their GPU count with the time that they would have taken alone (`sharing`). Where there is no record the rate comes from
`rates.csv`, whose rows hold for one configuration or, where none is given, for all.
The rows of flow-fno on cuda are copies of those of fno, which has the same layers.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, TypeGuard

from spdebench.campaign.effort import epoch_cost, million_numbers, space_dimensions, training_part
from spdebench.campaign.sharing import loads, slowdown
from spdebench.errors import UserError
from spdebench.models import MODELS
from spdebench.paper.base import AnySpec
from spdebench.records import Record, Records
from spdebench.spec import canonical_json
from spdebench.training import RunSpec
from spdebench.training.provenance import device_type

# Assumptions where no record says more
SHARE_OF_EPOCHS = 0.5  # share of the allowed epochs that a run takes before it stops early
START_SECONDS = 2.0  # to read the data, build the model and score it
SCORING_SECONDS = 5.0  # to score a run on one further dataset
RATE_WITHOUT_EPOCHS = 0.5  # seconds per million numbers of a run without epochs (a baseline or a reference row)

Key = tuple[str | int, ...]
"""What similar runs share: (model, equation, configuration), (model, equation), (model, dimensions) or (model,)."""
Samples = dict[Key, dict[str, float]]
"""A quantity measured in finished runs: key of similar runs (`_keys`) -> digest of the run -> value."""


@cache
def _rates_of_the_package() -> tuple[dict[str, str], ...]:
    """The rows of `rates.csv`."""
    text = (resources.files("spdebench.campaign") / "rates.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


class Rates:
    """Seconds per epoch and million numbers on a kind of device, and the share of the allowed epochs that runs take."""

    def __init__(self, records: Records, device: str = "cpu") -> None:
        self.kind = device_type(device)
        self._rates: Samples = defaultdict(dict)
        self._shares: Samples = defaultdict(dict)
        self._without_epochs: Samples = defaultdict(dict)
        like_device = {d: r for d, r in records.items() if device_type(r.provenance.device or "") == self.kind}
        self.loads = loads(like_device)
        for record in like_device.values():
            self._learn(record)
        for row in _rates_of_the_package():
            if row["device"] == self.kind:
                self._default(row)

    def _learn(self, record: Record) -> None:
        """Add what a finished run tells about runs like it."""
        try:
            samples, size = training_part(record.datasets, record.task)
        except UserError:  # of an equation that is not declared here
            return
        if not size:
            return
        effort = epoch_cost(samples, size, record.options, self.kind)
        allowed, taken, digest = record.options.get("epochs"), seconds_without_epochs(record), record.digest
        alone = not record.shared_device or digest in self.loads
        for key in _keys(record.model, record.datasets, record.config):
            if _measured(taken):
                self._without_epochs[key][digest] = taken / size
            if record.epochs and _measured(record.training_seconds) and alone:
                factor = slowdown(self.loads.get(digest, 1.0), self.kind)
                self._rates[key][digest] = record.training_seconds / record.epochs / effort / factor
            if record.epochs and isinstance(allowed, int) and allowed > 0:
                self._shares[key][digest] = record.epochs / allowed

    def _default(self, row: Mapping[str, str]) -> None:
        """A rate from `rates.csv`, if there is no record; the first row that matches."""
        for key in _known_as(row["model"], row["equation"], row["config"])[0 if row["config"] else 1 :]:
            if not self._rates.get(key):
                self._rates[key] = {"": float(row["seconds"]) / float(row["million"])}

    def _median(self, table: Samples, run: AnySpec | Record, default: float, excluded: str = "-") -> float:
        """The median over the runs that are most like this one, except the run with the digest ``excluded``."""
        for key in _keys(run.model, run.datasets, getattr(run, "config", {})):
            if found := [value for digest, value in table.get(key, {}).items() if digest != excluded]:
                return statistics.median(found)
        return default

    def by_equation(self) -> dict[tuple[str, str], float]:
        """Median rates of finished runs, by model and equation."""
        found: dict[tuple[str, str], float] = {}
        for key, rates in self._rates.items():
            recorded = [rate for digest, rate in rates.items() if digest]
            if len(key) == 2 and isinstance(key[1], str) and recorded:
                found[str(key[0]), key[1]] = statistics.median(recorded)
        return found

    def epochs(self, run: AnySpec) -> float:
        """About how many epochs a run will take."""
        allowed = getattr(run, "options", {}).get("epochs", 0)
        if getattr(run, "options", {}).get("stop") == 0:  # it never stops early
            return float(allowed)
        return self._median(self._shares, run, SHARE_OF_EPOCHS) * float(allowed)

    def seconds(self, run: AnySpec) -> float:
        """About how long a run takes from the start, alone on its device."""
        if isinstance(run, RunSpec) and run.options["epochs"]:
            return START_SECONDS + self._per_epoch(run) * self.epochs(run)
        rate = self._median(self._without_epochs, run, RATE_WITHOUT_EPOCHS)
        return START_SECONDS + rate * million_numbers(run.datasets, run.task)

    def _per_epoch(self, run: RunSpec | Record, excluded: str = "-") -> float:
        every = [rate for key, rates in self._rates.items() if len(key) == 1 for rate in rates.values()]
        rate = self._median(self._rates, run, statistics.median(every) if every else 1.0, excluded)
        return rate * epoch_cost(*training_part(run.datasets, run.task), run.options, self.kind)

    def measured_over_estimated(self, record: Record) -> float | None:
        """Measured over estimated seconds of a finished run, the estimate made without its own record.

        Its epochs and the load of its device are taken as they were; None if nothing was measured.
        """
        try:
            if record.epochs and record.training_seconds:
                alone = self._per_epoch(record, record.digest) * record.epochs
                factor = slowdown(self.loads.get(record.digest, 1.0), self.kind)
                return (START_SECONDS + record.training_seconds) / (START_SECONDS + alone * factor)
            if (taken := seconds_without_epochs(record)) is not None and not record.epochs:
                rate = self._median(self._without_epochs, record, RATE_WITHOUT_EPOCHS, record.digest)
                return (START_SECONDS + taken) / (START_SECONDS + rate * million_numbers(record.datasets, record.task))
        except UserError:  # of an equation that is not declared here
            pass
        return None


def _measured(seconds: float | None) -> TypeGuard[float]:
    """Whether a time in a record can be one: it is known, finite and not negative."""
    return seconds is not None and 0 <= seconds < math.inf


def seconds_without_epochs(record: Record) -> float | None:
    """Seconds that a run without epochs took, to fit its model or to measure its reference row; None for others."""
    if record.epochs or record.options.get("epochs"):
        return None
    return record.training_seconds if record.model in MODELS else record.measuring_seconds


def _keys(model: str, datasets: Iterable[Mapping[str, Any]], config: Mapping[str, Any]) -> list[Key]:
    """Keys of similar runs, from the most similar to the least similar."""
    datasets = list(datasets)
    *similar, any_data = _known_as(model, str(datasets[0].get("equation")), canonical_json(dict(config)))
    try:
        dimensions = space_dimensions(datasets)
    except UserError:  # of an equation that is not declared here
        dimensions = 0
    return [*similar, *([(model, dimensions)] if dimensions else []), any_data]


def _known_as(model: str, equation: str, config: str) -> list[Key]:
    return [(model, equation, config), (model, equation), (model,)]
