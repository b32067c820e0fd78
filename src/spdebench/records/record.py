"""The record of one run as a typed value: its spec, its scores, its times, and the machine and versions that made it.

`Record.to_dict` returns the written form (version 2). `Record.from_dict` is the only reader: it accepts versions 1 and
2, and refuses anything else with one line that names the field.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from spdebench.errors import UserError
from spdebench.files import plain_name
from spdebench.records.codec import build, encode, shown
from spdebench.records.fields import FieldData
from spdebench.records.migrate import migrated

T = TypeVar("T")
VERSION = 2
"""Version of the written form; `migrate` knows the older ones."""
TEST = "test"
"""The part of its own dataset that a run is scored on; other parts are shifts, by label."""
FINER, INDEPENDENT, FLOOR = "finer", "independent", "floor"
"""Shifts of a solver's record: the data against a finer solution and against an independent ensemble, and the smallest
error that the task allows."""


@dataclass(frozen=True)
class MetricValue:
    """A metric's value and, where it was computed, its confidence interval. NaN: the prediction was not finite."""

    value: float = math.nan
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class PartScores:
    """Scores on some samples, and metrics of single samples; ``datasets``, ``part`` and ``n`` identify the samples."""

    scores: Mapping[str, MetricValue] = field(default_factory=dict)
    samples: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    datasets: tuple[Mapping[str, Any], ...] = ()
    part: str = ""
    n: int | None = None

    def without(self, known: PartScores) -> PartScores:
        """Only the metrics that other scores of the same samples do not have."""
        return dataclasses.replace(self, scores=_only_new(self.scores, known.scores), samples={})

    def filled_from(self, other: PartScores) -> PartScores:
        """These scores, with the metrics added that only ``other`` has."""
        return dataclasses.replace(self, scores={**self.scores, **_only_new(other.scores, self.scores)})


def _only_new(scores: Mapping[str, MetricValue], known: Mapping[str, MetricValue]) -> dict[str, MetricValue]:
    return {name: value for name, value in scores.items() if name not in known}


@dataclass(frozen=True)
class Provenance:
    """Versions, device, machine, commit (with a + if files had changed) and start of a run; None: not recorded.

    ``resumed``: for a run that was continued with other versions or on another device, the differences as text.
    """

    spdebench: str | None = None
    torch: str | None = None
    python: str | None = None
    device: str | None = None
    machine: str | None = None
    commit: str | None = None
    started: str | None = None
    resumed: tuple[str, ...] = ()


@dataclass(frozen=True)
class MomentCurves:
    """Mean and variance over samples at each grid point, one curve per frame."""

    mean: tuple[tuple[float, ...], ...]
    variance: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class MomentData:
    """Mean and variance over the test part at some frames, predicted and true, on points start + k step."""

    frames: tuple[int, ...]
    times: tuple[float, ...]
    start: float
    step: float
    samples: int
    predicted: MomentCurves
    true: MomentCurves

    def __post_init__(self) -> None:
        curves = [c for side in (self.predicted, self.true) for c in (side.mean, side.variance)]
        if not self.frames or {len(self.times), *map(len, curves)} != {len(self.frames)}:
            raise UserError("moments must have one curve per frame")
        if len({len(line) for curve in curves for line in curve}) != 1:
            raise UserError("moments must have curves of one length")


@dataclass(frozen=True)
class LossLog:
    """Training and validation loss at some epochs."""

    epoch: tuple[int, ...]
    train: tuple[float, ...]
    val: tuple[float, ...]

    def __post_init__(self) -> None:
        if not len(self.epoch) == len(self.train) == len(self.val):
            raise UserError("log must have one training and one validation loss per epoch")


@dataclass(frozen=True)
class FigureData:
    """The data of a run that a figure of the paper needs in addition to its scores."""

    moments: MomentData | None = None
    log: LossLog | None = None
    fields: FieldData | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the kinds of data that are present."""
        return tuple(f.name for f in dataclasses.fields(self) if getattr(self, f.name) is not None)

    def only(self, names: Iterable[str]) -> FigureData:
        return FigureData(**{name: getattr(self, name) for name in names})

    def filled_from(self, other: FigureData) -> FigureData:
        """This data, with the kinds added that only ``other`` has."""
        missing = [name for name in other.names if name not in self.names]
        return dataclasses.replace(self, **{name: getattr(other, name) for name in missing})


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run. ``config``, ``datasets``, ``task``, ``options`` and ``initial`` are its spec, ``digest`` their hash.

    ``exclusive_timing``: nothing else ran on the device while the inference time was measured. ``shared_device``:
    other runs were made at the same time, so that times measured during the run cannot be compared.
    """

    digest: str
    name: str
    model: str
    config: Mapping[str, Any]
    datasets: tuple[Mapping[str, Any], ...]
    task: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    initial: str = ""
    parameters: int | None = None
    real_parameters: int | None = None  # a complex parameter counts twice
    val: float | None = None
    best_epoch: int = 0
    epochs: int = 0
    scores: Mapping[str, MetricValue] = field(default_factory=dict)
    samples: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    shifts: Mapping[str, PartScores] = field(default_factory=dict)
    figure_data: FigureData = FigureData()
    inference_ms: float | None = None
    inference_batch: int | None = None
    exclusive_timing: bool = False
    shared_device: bool = False
    training_seconds: float | None = None
    measuring_seconds: float | None = None
    peak_memory_mb: float | None = None
    provenance: Provenance = Provenance()

    def __post_init__(self) -> None:
        if not self.datasets:
            raise UserError("datasets must name at least one dataset")
        if not all(isinstance(d.get("fields", {}), Mapping) for d in self.datasets):
            raise UserError("datasets: fields must be an object")
        if self.exclusive_timing and self.inference_ms is None:
            raise UserError("inference_ms must be a number where exclusive_timing is true")

    def part(self, name: str = TEST) -> PartScores | None:
        """Scores on the run's own test part, or on the shift of this label."""
        return PartScores(self.scores, self.samples) if name == TEST else self.shifts.get(name)

    def not_scored(self, metrics: Iterable[str], part: str = TEST) -> tuple[str, ...]:
        """The metrics that it does not have on a part; all of them if the part was not scored."""
        scored = self.part(part)
        return tuple(name for name in metrics if scored is None or name not in scored.scores)

    def value(self, metric: str, part: str = TEST) -> float | None:
        """One number. None: the part was not scored, or no time was measured. NaN: there is no finite score."""
        if metric == "inference_ms":
            return self.inference_ms
        if metric == "val":
            return math.nan if self.val is None else self.val
        scored = self.part(part)
        return None if scored is None else scored.scores.get(metric, MetricValue()).value

    @property
    def knows_scheme(self) -> bool:
        """Whether the model was given the linear part of the scheme that made the data; such rows are not ranked."""
        return self.config.get("kernel") == "generator"

    @property
    def equation(self) -> str:
        """The name of the (first) dataset's equation; ``imported`` if it is not known."""
        return str(self.datasets[0].get("equation") or "imported")

    @property
    def file_name(self) -> str:
        """The file of a results folder that the record belongs to."""
        name = self.datasets[0].get("equation") or "imported"
        return f"{plain_name(name, 'the equation of a record')}.jsonl"

    # --- later additions ------------------------------------------------------------------------------------------
    def addition_to(self, known: Record) -> Addition | None:
        """The scores, figure data and exclusive time that ``known``, another record of this run, does not have.

        None if there are none.
        """
        scores = _only_new(self.scores, known.scores)
        shifts = {label: scored for label, scored in self.shifts.items() if label not in known.shifts}
        for label in self.shifts.keys() & known.shifts.keys():
            if (fresh := self.shifts[label].without(known.shifts[label])).scores:
                shifts[label] = fresh
        figure_data = self.figure_data.only(n for n in self.figure_data.names if n not in known.figure_data.names)
        timed = self.exclusive_timing and not known.exclusive_timing
        if not (scores or shifts or figure_data.names or timed):
            return None
        return Addition(
            digest=self.digest,
            name=self.name,
            model=self.model,
            scores=scores,
            shifts=shifts,
            figure_data=figure_data,
            exclusive_timing=timed,
            inference_ms=self.inference_ms if timed else None,
            inference_batch=self.inference_batch if timed else None,
        )

    def with_addition(self, new: Addition) -> Record:
        """This record with an addition. Known scores stay; an exclusive time replaces one that is not exclusive."""
        both = {label: self.shifts[label].filled_from(s) for label, s in new.shifts.items() if label in self.shifts}
        merged = dataclasses.replace(
            self,
            scores={**self.scores, **_only_new(new.scores, self.scores)},
            shifts={**new.shifts, **self.shifts, **both},
            figure_data=self.figure_data.filled_from(new.figure_data),
        )
        if not new.exclusive_timing:
            return merged
        batch = new.inference_batch or self.inference_batch
        return dataclasses.replace(merged, exclusive_timing=True, inference_ms=new.inference_ms, inference_batch=batch)

    def filled_from(self, other: Record) -> Record:
        """This record with the additions that another record of the same run has."""
        new = other.addition_to(self)
        return self if new is None else self.with_addition(new)

    # --- written form ---------------------------------------------------------------------------------------------
    def to_dict(self) -> dict[str, Any]:
        """The written form: the version, and all fields that differ from their defaults."""
        return {"version": VERSION, **encode(self)}

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """The record with the written form ``values``, of this version or an older one."""
        return _from_dict(cls, values)


@dataclass(frozen=True, kw_only=True)
class Addition:
    """A later line of a results file. It adds scores by further metrics or on other data, figure data or an exclusive
    time to a record."""

    digest: str
    name: str = ""
    model: str = ""
    scores: Mapping[str, MetricValue] = field(default_factory=dict)
    shifts: Mapping[str, PartScores] = field(default_factory=dict)
    figure_data: FigureData = FigureData()
    exclusive_timing: bool = False
    inference_ms: float | None = None
    inference_batch: int | None = None

    def __post_init__(self) -> None:
        if self.exclusive_timing and self.inference_ms is None:
            raise UserError("inference_ms must be a number where exclusive_timing is true")

    def to_dict(self) -> dict[str, Any]:
        return {"version": VERSION, **encode(self)}


Records = Mapping[str, Record]
"""Records by digest."""


def decode_line(values: Any) -> Record | Addition:
    """A line of a results file; a line without datasets is an addition."""
    whole = isinstance(values, dict) and "datasets" in values
    return _from_dict(Record, values) if whole else _from_dict(Addition, values)


def _from_dict(cls: type[T], values: Any) -> T:
    """The record or addition with this written form."""
    if not isinstance(values, dict):
        raise UserError(f"expected an object, got {shown(values)}")
    current = migrated(values, VERSION)
    return build(cls, {key: value for key, value in current.items() if key != "version"}, "")
