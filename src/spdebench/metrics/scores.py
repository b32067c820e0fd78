"""The result of an evaluation: one `Score` per metric, and counts of samples. It is stored as JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from spdebench.display import Displayed, TableRows
from spdebench.errors import UserError, unknown
from spdebench.metrics.bootstrap import Interval, Statistic, weighted_mean
from spdebench.spec import loads

Kind = Literal["samplewise", "law"]
Reduction = Literal["mean", "rms"]


def reducer(samples: np.ndarray, reduction: Reduction) -> Statistic:
    """The function weights -> weighted mean, or weighted root mean square, of the per-sample values."""
    return weighted_mean(samples, 2.0 if reduction == "rms" else 1.0)


@dataclass(frozen=True, eq=False)
class Score:
    """The value of one metric with its interval.

    ``samples`` are per-sample values (NaN: excluded); ``value`` is their mean or root mean square (``reduction``). For
    a metric that compares laws they are jackknife pseudo-values, whose mean is the value. ``curve`` is over t_1..t_T.
    """

    metric: str
    value: float
    kind: Kind
    ideal: float = 0.0
    samples: np.ndarray | None = None
    reduction: Reduction = "mean"
    curve: np.ndarray | None = None
    interval: Interval | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Scores(Displayed, Mapping[str, Score]):
    """Scores by metric name, in the order asked for: ``scores["rel_l2"].value``.

    ``counts``: samples, nonfinite_samples. ``ic_error``: relative L2 at t_0 (None without t_0, NaN if u_0 vanishes).
    ``settings``: everything else that the numbers depend on. ``skipped``: metrics of a group that do not apply, and
    why.
    """

    scores: dict[str, Score]
    counts: dict[str, int]
    ic_error: float | None
    settings: dict[str, Any]
    skipped: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Score:
        if name not in self.scores:
            raise unknown("score", name, self.scores)
        return self.scores[name]

    def __contains__(self, name: object) -> bool:
        return name in self.scores

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    def summary(self) -> dict[str, float]:
        """The value of each metric by name."""
        return {name: score.value for name, score in self.scores.items()}

    def rows(self) -> list[dict[str, Any]]:
        """One flat row per metric, for tables."""
        out = []
        for name, score in self.scores.items():
            ends = score.interval
            out.append(
                {
                    "metric": name,
                    "value": score.value,
                    "low": None if ends is None else ends.low,
                    "high": None if ends is None else ends.high,
                    "interval": None if ends is None else ends.method,
                    "kind": score.kind,
                }
            )
        return out

    def overview(self) -> tuple[str, TableRows]:
        keys = ("metric", "value", "low", "high", "kind")
        return f"Scores of {self.counts.get('samples')} samples", [{k: row[k] for k in keys} for row in self.rows()]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; numbers that JSON cannot represent become "inf", "-inf", "nan"."""
        scores = {name: _plain(vars(score)) for name, score in self.scores.items()}
        others = {"counts": self.counts, "ic_error": self.ic_error, "settings": self.settings, "skipped": self.skipped}
        return {"scores": scores, **_plain(others)}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), allow_nan=False)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Scores:
        missing = {"scores", "counts", "ic_error", "settings", "skipped"} - set(_mapping(values))
        if missing:
            raise UserError(f"not a record of scores: {', '.join(sorted(missing))} missing")
        try:
            return Scores(
                scores={name: _score(_mapping(score)) for name, score in _mapping(values["scores"]).items()},
                counts=dict(_mapping(values["counts"])),
                ic_error=_number(values["ic_error"]),
                settings=dict(_mapping(values["settings"])),
                skipped=dict(_mapping(values["skipped"])),
            )
        except (TypeError, ValueError, KeyError) as error:
            raise UserError(f"not a record of scores: {error}") from None

    @staticmethod
    def from_json(text: str) -> Scores:
        try:
            values = loads(text)
        except ValueError as error:
            raise UserError(f"not a record of scores: {error}") from None
        return Scores.from_dict(values)

    def __str__(self) -> str:
        lines = []
        for row in self.rows():
            ends = "" if row["low"] is None else f"  [{row['low']:.4g}, {row['high']:.4g}]"
            lines.append(f"{row['metric']:<16} {row['value']:>11.4g}{ends}")
        return "\n".join([*lines, *self.remarks()])

    def remarks(self) -> list[str]:
        """Lines to print below the values: why some are infinite, and which lie outside their intervals."""
        bad, total = self.counts.get("nonfinite_samples", 0), self.counts.get("samples")
        first = [f"the prediction has NaN or infinite values in {bad} of {total} samples, so scores are infinite"]
        return [*(first if bad else []), *bias_note(self.rows())]


def bias_note(rows: TableRows) -> list[str]:
    """A line about the scores that lie outside their intervals; empty if there are none. See `Interval`."""
    ends = [(row["metric"], row["value"], row["low"], row["high"]) for row in rows if row["low"] is not None]
    names = [name for name, value, low, high in ends if not low <= value <= high]
    return (
        [f"{', '.join(names)}: the interval is corrected for a bias of the value, which lies outside"] if names else []
    )


def _score(values: Mapping[str, Any]) -> Score:
    """The score that `Scores.to_dict` turned into ``values``."""
    known = dict(values)
    for key in ("samples", "curve"):
        known[key] = None if known[key] is None else np.array([_number(x) for x in known[key]], dtype=np.float64)
    if (ends := known["interval"]) is not None:
        low, high, level = (float(ends[key]) for key in ("low", "high", "level"))
        known["interval"] = Interval(low, high, level, str(ends["method"]))
    known["details"] = {k: _number(v) for k, v in _mapping(known["details"]).items()}
    known |= {key: float(_number(known[key])) for key in ("value", "ideal")}
    if known["kind"] not in get_args(Kind) or known["reduction"] not in get_args(Reduction):
        raise ValueError(f"kind {known['kind']!r}, reduction {known['reduction']!r}")
    return Score(**known)


def _mapping(value: Any) -> Mapping[str, Any]:
    """The value itself if it is an object of JSON, else an error."""
    if not isinstance(value, Mapping):
        raise UserError(f"not a record of scores: expected an object, got {value!r}")
    return value


def _plain(value: Any) -> Any:
    """Nested values as JSON can represent them."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return [_plain(v) for v in value.tolist()]
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _number(value: Any) -> Any:
    """The inverse of `_plain` for numbers and lists of numbers."""
    if isinstance(value, list):
        return [_number(v) for v in value]
    return float(value) if isinstance(value, str) and value in ("inf", "-inf", "nan") else value
