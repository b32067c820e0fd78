"""Datasets and runs as the leaderboard and the site show them.

The values in the dataset, task and configuration of a record are not restricted: they may be any JSON values.
"""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from spdebench.challenge import Scored, Submission
from spdebench.data import DatasetSpec
from spdebench.data.identity import from_dict
from spdebench.equations import EQUATIONS, Equation
from spdebench.errors import UserError
from spdebench.paper.base import Table
from spdebench.records import MetricValue, Record, Records
from spdebench.records.record import FINER, TEST
from spdebench.report.formatting import fingerprint, mapping, page_name, real, several, text
from spdebench.tasks import TASK_TEXT
from spdebench.training.law_rows import INDEPENDENT_LAW
from spdebench.training.solver_row import SOLVER, outdated
from spdebench.training.train_command import train_command

_SHOWN = ("truncation", "sigma", "boundary", "kappa")  # fields with a column of their own (kappa: the task)
_AUTOMATIC = ("basis", "solve_points", "substeps")  # fields that the equation fills in if they are not given


@dataclass(frozen=True)
class ShownDataset:
    """A dataset as records name it: the identity of a native file, made here or imported."""

    identity: Mapping[str, Any]

    @cached_property
    def key(self) -> str:
        """The name of its page: the digest in the name of the dataset's file."""
        return fingerprint(self.identity)

    @property
    def imported(self) -> bool:
        return "published" in self.identity

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The fields of the equation; for imported data those that are known."""
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
        """The equation, if it is declared and accepts these values; otherwise None."""
        try:
            return None if self.imported else from_dict(dict(self.identity)).equation
        except (UserError, ValueError, TypeError, AttributeError):
            return None

    @cached_property
    def special(self) -> dict[str, Any]:
        """The fields that differ from the equation's defaults; all fields if the equation is not known."""
        if self.known is None:
            return {} if self.imported else dict(self.fields)
        default = {f.name: f.default for f in dataclasses.fields(self.known)}
        values = dataclasses.asdict(self.known)
        filled = EQUATIONS[self.known.name](**{k: v for k, v in values.items() if k not in _AUTOMATIC})
        default |= {key: getattr(filled, key) for key in _AUTOMATIC}
        return {key: value for key, value in values.items() if value != default[key]}

    @property
    def extras(self) -> str:
        """The fields that have no column of their own in the leaderboard."""
        if self.imported:
            return f"imported {text(mapping(self.identity['published']).get('file'))}"
        others = [f"{key}={text(value)}" for key, value in self.special.items() if key not in _SHOWN]
        seed = self.identity.get("seed")
        return " ".join([f"n={text(self.identity.get('n'))}", *others, *([f"seed={text(seed)}"] if seed else [])])

    @property
    def label(self) -> str:
        """Equation, J, sigma, boundary and kappa in words."""
        known = {key: self.fields.get(key) for key in _SHOWN}
        signs = {"truncation": "J ", "sigma": "σ ", "boundary": "", "kappa": "κ "}
        parts = [f"{sign}{text(known[key])}" for key, sign in signs.items() if known[key]]
        return ", ".join([self.equation, *parts, *(["imported"] if self.imported else [])])

    @property
    def choices(self) -> dict[str, str]:
        """The values by which a reader can filter datasets, by name."""
        names = {"J": "truncation", "σ": "sigma", "boundary": "boundary"}
        return {"equation": self.equation, **{name: text(self.fields.get(key)) for name, key in names.items()}}

    @cached_property
    def order(self) -> tuple[Any, ...]:
        """A key that sorts the datasets of an equation; those that differ only in J come one after the other."""
        found = (real(self.fields.get(key)) for key in ("sigma", "truncation", "kappa"))
        sigma, truncation, kappa = (math.inf if value is None or math.isnan(value) else value for value in found)
        return (text(self.fields.get("boundary")), sigma, self.extras, truncation, kappa, self.key)

    @property
    def command(self) -> str | None:
        """The command that makes the file; None for imported data."""
        if self.imported:
            return None
        fields = [f"{key}={text(value)}" for key, value in self.special.items()]
        numbers = ["-n", text(self.identity.get("n")), "--seed", text(self.identity.get("seed"))]
        if self.known is not None and self.identity.get("chunk") != DatasetSpec(equation=self.known, n=1).chunk:
            numbers += ["--chunk", text(self.identity.get("chunk"))]
        if self.identity.get("seen") is not None:
            numbers += ["--seen", text(self.identity["seen"])]
        return shlex.join(["spdebench", "generate", self.equation, *fields, *numbers])


@dataclass(frozen=True)
class ShownRun:
    """One record. ``key`` is the name of its page.

    ``submission`` and ``scored``: the origin of the record, if it is not ours. ``pilot``: whether this is a short run
    that tried a learning rate for another one. ``known_data``: a cache of datasets by key, which all runs share.
    """

    key: str
    record: Record
    submission: Submission | None = None
    scored: Scored | None = None
    pilot: bool = False
    known_data: dict[str, ShownDataset] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def datasets(self) -> tuple[ShownDataset, ...]:
        found = map(ShownDataset, self.record.datasets)
        return tuple(self.known_data.setdefault(data.key, data) for data in found)

    @cached_property
    def model(self) -> str:
        return text(self.record.model)

    @property
    def name(self) -> str:
        return text(self.record.name or self.key)

    @property
    def title(self) -> str:
        """Model, data and seed in words."""
        return f"{self.model} on {several(data.label for data in self.datasets) or text(None)}, seed {self.seed}"

    @property
    def inputs(self) -> str:
        """The task: ``xi -> u`` or ``(u0, xi) -> u``."""
        given = text(self.record.task.get("inputs"))
        return {str(key): shown for key, shown in TASK_TEXT.items()}.get(given, given)

    @property
    def seed(self) -> str:
        return text(self.record.options.get("seed", 0))

    @property
    def shifted(self) -> list[ShownDataset]:
        """The datasets of all shifts."""
        return [ShownDataset(identity) for scored in self.record.shifts.values() for identity in scored.datasets]

    @cached_property
    def commands(self) -> list[str]:
        """The commands that make the run again; empty if there are none."""
        trained = train_command(self.record)
        return [*(each.command or "" for each in self.datasets), trained] if trained else []

    @property
    def solver(self) -> bool:
        return self.record.model == SOLVER

    @property
    def true_law(self) -> bool:
        """Whether this is the row of the true law, which is the floor for predicted laws."""
        return self.record.model == INDEPENDENT_LAW

    @property
    def reference(self) -> bool:
        """Whether this is not a model but the solver or the true law."""
        return self.solver or self.true_law

    @property
    def baseline(self) -> bool:
        """Whether this is one of our models that is not trained by gradients."""
        return self.record.epochs == 0 and not self.reference and self.submission is None

    @property
    def page(self) -> str:
        """The path of its page within the site."""
        return f"runs/{self.key}.html" if self.submission is None else f"submissions/{self.submission.name}.html"

    @cached_property
    def scores(self) -> Mapping[str, MetricValue]:
        """The scores by metric; those of the solver are against a finer solution."""
        finer = self.record.part(FINER) if self.solver else None
        return finer.scores if finer and finer.scores else self.record.scores

    @cached_property
    def problem(self) -> str:
        """A fingerprint of datasets and task; runs with the same one can be compared."""
        return fingerprint([self.record.datasets, self.record.task])

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Configuration and options except the seed, in which two rows of one model may differ."""
        options = {key: value for key, value in self.record.options.items() if key != "seed"}
        initial = {"initial": self.record.initial} if self.record.initial else {}
        return {**self.record.config, **options, **initial}

    @cached_property
    def group(self) -> str:
        """A fingerprint of everything except the seed; runs with the same one form a row."""
        return fingerprint([self.problem, self.record.model, self.settings])


def shown_runs(records: Records, pilots: Collection[str] = ()) -> list[ShownRun]:
    """The runs of all records, sorted by key; outdated records of the solver are left out.

    ``pilots`` are digests of short runs that tried a learning rate.
    """
    current = {d: record for d, record in records.items() if not outdated(record)}
    data: dict[str, ShownDataset] = {}
    found = (ShownRun(page_name(d), record, pilot=d in pilots, known_data=data) for d, record in current.items())
    return sorted(found, key=lambda run: run.key)


def pilots_of(tables: Iterable[Table]) -> frozenset[str]:
    """Digests of the short runs that choose learning rates for the runs of these tables."""
    found: set[str] = set()
    for table in tables:
        edition = table.edition or "paper"
        tuned = [want for want in table.wants if want.learning_rates and want.part == TEST]
        found |= {run.digest for want in tuned if want.supported(edition) for run in want.pilots(edition).values()}
    return frozenset(found)
