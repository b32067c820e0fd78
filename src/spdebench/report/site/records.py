"""What records say: datasets and runs, read from dictionaries that anyone may have written."""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spdebench.data.identity import from_dict
from spdebench.equations import EQUATIONS, Equation
from spdebench.errors import UserError
from spdebench.report.site.words import fingerprint, mapping, page_name, real, sequence, text
from spdebench.training.solver_row import FINER, SOLVER

_SHOWN = ("truncation", "sigma", "boundary", "kappa")  # columns of their own (kappa: the task)
_AUTOMATIC = ("basis", "solve_points", "substeps")  # filled in by the equation when left open


@dataclass(frozen=True)
class Data:
    """A dataset as records name it: the identity of a native file, made here or imported."""

    identity: dict[str, Any]

    @cached_property
    def key(self) -> str:
        """Names its page; the digest that also stands in the name of its file."""
        return fingerprint(self.identity)

    @property
    def imported(self) -> bool:
        return "published" in self.identity

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The equation's fields; of imported data what is known."""
        if self.imported:
            published, grid = mapping(self.identity["published"]), mapping(self.identity.get("grid"))
            tags = mapping(published.get("tags"))
            known = {"truncation": tags.get("truncation", published.get("eps")), "sigma": tags.get("sigma")}
            return known | {"boundary": grid.get("boundary")}
        return mapping(self.identity.get("fields"))

    @property
    def equation(self) -> str:
        if self.imported:
            return text(mapping(mapping(self.identity["published"]).get("tags")).get("equation", "imported"))
        return text(self.identity.get("equation"))

    @cached_property
    def known(self) -> Equation | None:
        """The equation's spec, if this version has that equation and takes these values."""
        try:
            return None if self.imported else from_dict(self.identity).equation
        except (UserError, ValueError, TypeError, AttributeError):
            return None

    @cached_property
    def special(self) -> dict[str, Any]:
        """The fields that differ from the equation's defaults; all of them where the equation is not known."""
        if self.known is None:
            return {} if self.imported else dict(self.fields)
        default = {f.name: f.default for f in dataclasses.fields(self.known)}
        values = dataclasses.asdict(self.known)
        filled = EQUATIONS[self.known.name](**{k: v for k, v in values.items() if k not in _AUTOMATIC})
        default |= {key: getattr(filled, key) for key in _AUTOMATIC}
        return {key: value for key, value in values.items() if value != default[key]}

    @property
    def extras(self) -> str:
        """What the leaderboard's other columns do not tell."""
        if self.imported:
            return f"imported {text(mapping(self.identity['published']).get('file'))}"
        rest = [f"{key}={text(value)}" for key, value in self.special.items() if key not in _SHOWN]
        seed = self.identity.get("seed")
        return " ".join([f"n={text(self.identity.get('n'))}", *rest, *([f"seed={text(seed)}"] if seed else [])])

    @property
    def label(self) -> str:
        known = {key: self.fields.get(key) for key in _SHOWN}
        signs = {"truncation": "J ", "sigma": "σ ", "boundary": "", "kappa": "κ "}
        parts = [f"{sign}{text(known[key])}" for key, sign in signs.items() if known[key]]
        return ", ".join([self.equation, *parts, *(["imported"] if self.imported else [])])

    @property
    def command(self) -> str | None:
        """The command that makes the file."""
        if self.imported:
            return None
        words = [f"{key}={text(value)}" for key, value in self.special.items()]
        numbers = ["-n", text(self.identity.get("n")), "--seed", text(self.identity.get("seed"))]
        return shlex.join(["spdebench", "generate", self.equation, *words, *numbers])


@dataclass(frozen=True)
class Run:
    """One record. ``key`` names its page."""

    key: str
    record: dict[str, Any]

    @cached_property
    def datasets(self) -> tuple[Data, ...]:
        return tuple(Data(mapping(d)) for d in sequence(self.record.get("datasets")))

    @cached_property
    def model(self) -> str:
        return text(self.record.get("model"))

    @property
    def name(self) -> str:
        return text(self.record.get("name") or self.key)

    @cached_property
    def task(self) -> dict[str, Any]:
        return mapping(self.record.get("task"))

    @cached_property
    def options(self) -> dict[str, Any]:
        return mapping(self.record.get("options"))

    @property
    def seed(self) -> str:
        return text(self.options.get("seed", 0))

    @cached_property
    def shifts(self) -> dict[str, dict[str, Any]]:
        """What it scored on other data, by label."""
        return {text(label): mapping(shift) for label, shift in mapping(self.record.get("shifts")).items()}

    @property
    def shifted(self) -> list[Data]:
        """The datasets of all shifts."""
        return [data for shift in self.shifts.values() for data in datasets_of(shift)]

    @property
    def solver(self) -> bool:
        return self.record.get("model") == SOLVER

    @property
    def baseline(self) -> bool:
        """Not trained by gradients: zero epochs."""
        return self.record.get("epochs") == 0 and not self.solver

    @cached_property
    def scores(self) -> dict[str, tuple[float, float | None, float | None]]:
        """Metric -> value, and the ends of its interval where there is one; the solver's against a finer solution."""
        finer = self.shifts.get(FINER, {}) if self.solver else {}
        return read_scores(finer.get("scores") or self.record.get("scores"))

    def figure(self, key: str) -> float | None:
        """A number that stands at the record's top level."""
        return real(self.record.get(key))

    @cached_property
    def problem(self) -> str:
        """Fingerprint of datasets and task."""
        return fingerprint([self.record.get("datasets"), self.record.get("task")])

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Configuration and options but for the seed: what may tell two rows of one model apart."""
        options = {key: value for key, value in self.options.items() if key != "seed"}
        rest: dict[str, Any] = {key: self.record[key] for key in ("initial", "version") if key in self.record}
        return {**mapping(self.record.get("config")), **options, **rest}

    @cached_property
    def group(self) -> str:
        """Fingerprint of all but the seed."""
        return fingerprint([self.problem, self.record.get("model"), self.settings])


def datasets_of(shift: Mapping[str, Any]) -> list[Data]:
    """The datasets that a shift was scored on: one identity, or a list of them."""
    found = shift.get("dataset")
    return [
        Data(identity) for identity in (found if isinstance(found, list) else [found]) if isinstance(identity, dict)
    ]


def read_scores(values: Any) -> dict[str, tuple[float, float | None, float | None]]:
    """The ``scores`` of a record, or of one of its shifts: metric -> (value, low, high); null is what is not finite."""
    out = {}
    for name, score in mapping(values).items():
        known = mapping(score)
        value = math.nan if "value" in known and known["value"] is None else real(known.get("value"))
        if value is not None:
            out[text(name)] = (value, real(known.get("low")), real(known.get("high")))
    return out


def collect(records: Mapping[str, Any]) -> list[Run]:
    """Runs of all records that are dictionaries, by key."""
    runs = [Run(page_name(digest), record) for digest, record in records.items() if isinstance(record, dict)]
    return sorted(runs, key=lambda run: run.key)
