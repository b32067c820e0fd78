"""The classes of tables and figures: lists of numbers, each the mean of runs that anyone can repeat.

A `Want` declares one number: dataset, inputs, model, metric and settings that differ from the paper's usual ones. A
`Table` has wants, a title and notes; its cells are the wants with their runs (one per seed) and the published number.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from spdebench import spec
from spdebench.data import DatasetSpec
from spdebench.equations import equation
from spdebench.errors import UserError, unknown
from spdebench.metrics import DEFAULT, LAW_METRICS, METRICS
from spdebench.models import MODELS
from spdebench.paper import published
from spdebench.records import Record, Records
from spdebench.records.summary import SKILL
from spdebench.tasks import Inputs, TaskSpec, subsampling
from spdebench.training.identity import RunSpec, plan
from spdebench.training.law_rows import INDEPENDENT_LAW, LawRowSpec
from spdebench.training.solver_row import SOLVER, SolverSpec

T = TypeVar("T")
Edition = Literal["paper", "converged"]
EDITIONS: tuple[Edition, ...] = ("paper", "converged")
AnySpec = RunSpec | SolverSpec | LawRowSpec
OTHER_METRICS = (*LAW_METRICS, SKILL, "val", "inference_ms")
"""What a cell may show besides metrics of predictions: scores of laws, and what a run records of itself."""
PILOT_EPOCHS = 100
"""The number of epochs of a run that tries a learning rate."""


def third_party_models() -> list[str]:
    """Registered models of other packages and files; a table gets rows for them by `Table.with_models`."""
    return [name for name in MODELS if not MODELS[name].__module__.startswith("spdebench.")]


@dataclass(frozen=True)
class Data:
    """A dataset: an equation with some fields given, and ``n`` samples of ``seed``.

    With ``seen`` it stores the noise modes that this truncation keeps, and ``members`` of the law of u given these.
    """

    equation: str
    fields: tuple[tuple[str, Any], ...] = ()
    n: int = 1200
    seed: int = 0
    seen: int | None = None
    members: int = 1

    def having(self, **fields: Any) -> Data:
        """The same dataset with other fields of the equation."""
        return dataclasses.replace(self, fields=tuple(sorted((dict(self.fields) | fields).items())))

    def spec(self, edition: Edition = "paper") -> DatasetSpec:
        return _dataset(self, edition)


@functools.cache
def _dataset(data: Data, edition: Edition) -> DatasetSpec:
    chosen = equation(data.equation, edition=edition, **dict(data.fields))
    return DatasetSpec(equation=chosen, n=data.n, seed=data.seed, seen=data.seen)


def data(name: str, *, n: int = 1200, seed: int = 0, **fields: Any) -> Data:
    """The dataset of the equation called ``name`` with these fields."""
    return Data(name, tuple(sorted(fields.items())), n, seed)


@dataclass(frozen=True, kw_only=True)
class Want:
    """One number: ``metric`` of ``model`` on the test part of ``data`` (several: a mixture), or on ``test``.

    ``published`` overrides columns of the published csv if the paper uses other names; None: the paper has no such
    number. ``optional``: left out if the model cannot work with the data. ``ranked``: whether it may be the best of its
    column. ``figure_data``: data that a figure needs and the records of its runs contain in addition to scores
    (`figure_data.KINDS`). ``learning_rates``: validation selects one of these after `PILOT_EPOCHS` epochs with seed 0;
    these pilots are runs with records of their own, from which the choice is computed. ``order``: runs with a lower
    order are made before those with a higher one.
    """

    group: str
    row: str
    column: str
    metric: str
    model: str
    data: tuple[Data, ...]
    inputs: Inputs = "xi"
    task: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    part: str = "test"
    test: Data | None = None
    published: Mapping[str, str] | None = None
    optional: bool = False
    ranked: bool = True
    figure_data: tuple[str, ...] = ()
    learning_rates: tuple[float, ...] = ()
    order: int = 0

    def task_spec(self, edition: Edition) -> TaskSpec:
        """The task: the paper's sub-sampling for the equation unless ``task`` has another."""
        fields = {"inputs": self.inputs, **subsampling(self.data[0].spec(edition).equation), **self.task}
        return TaskSpec(**fields)

    @functools.cached_property
    def _known(self) -> dict[Any, Any]:
        """A cache of computed properties of this number: tables are filled many times."""
        return {}

    def _once(self, key: Any, compute: Callable[[], T]) -> T:
        """The cached value of ``key``, computed when first asked for."""
        if key not in self._known:
            self._known[key] = compute()
        found: T = self._known[key]
        return found

    def supported(self, edition: Edition) -> bool:
        """False for an optional row whose model cannot work with the data or with those of ``test``."""
        return self._once(edition, lambda: self._supported(edition))

    def _supported(self, edition: Edition) -> bool:
        """`supported`, not cached."""
        if not self.optional or self.model not in MODELS:
            return True
        setting = self.task_spec(edition).setting(self.data[0].spec(edition).equation)
        try:
            MODELS[self.model].supports(setting)
        except UserError:
            return False
        if self.test is None:
            return True
        shifted = self.task_spec(edition).setting(self.test.spec(edition).equation)
        return MODELS[self.model].predicts_on(shifted, setting)

    def runs(self, seeds: int, edition: Edition) -> tuple[AnySpec, ...]:
        """One run per seed; rows that do not depend on a seed (solver, baselines) have one run."""
        return self._once((seeds, edition), lambda: self._runs(seeds, edition))

    def _runs(self, seeds: int, edition: Edition) -> tuple[AnySpec, ...]:
        """`runs`, not cached."""
        task = spec.to_dict(self.task_spec(edition))
        if self.model == SOLVER:
            return (SolverSpec(self.data[0].spec(edition), task),)
        if self.model == INDEPENDENT_LAW:
            return (LawRowSpec(self.data[0].spec(edition), task, self.data[0].members),)
        first = self._run(task, edition)
        count = seeds if MODELS[self.model].trainable else 1
        return tuple(dataclasses.replace(first, options={**first.options, "seed": seed}) for seed in range(count))

    def pilots(self, edition: Edition) -> dict[float, RunSpec]:
        """The short run that tries each learning rate; empty if none is to be chosen."""
        return {rate: self._run_with(edition, learning_rate=rate, epochs=PILOT_EPOCHS) for rate in self.learning_rates}

    def _run_with(self, edition: Edition, **options: Any) -> RunSpec:
        """The run of seed 0 with other training options."""
        (run,) = dataclasses.replace(self, options={**self.options, **options}, learning_rates=()).runs(1, edition)
        assert isinstance(run, RunSpec)
        return run

    def tuned(self, edition: Edition, records: Records) -> tuple[Want, tuple[RunSpec, ...]]:
        """The same number with the learning rate of the best pilot, and the pilots that have no record yet."""
        pilots = self.pilots(edition)
        missing = tuple(run for run in pilots.values() if run.digest not in records)
        if missing or not pilots:
            return self, missing
        best = min(pilots, key=lambda rate: _validation(records[pilots[rate].digest]))
        return dataclasses.replace(self, options={**self.options, "learning_rate": best}), ()

    def _run(self, task: dict[str, Any], edition: Edition) -> RunSpec:
        """The run of seed 0, planned once for all cells that share it."""
        key = (self.model, self.data, edition, spec.canonical_json([task, dict(self.config), dict(self.options)]))
        if key not in _PLANNED:
            datasets = [d.spec(edition) for d in self.data]
            _PLANNED[key] = plan(self.model, datasets, task, self.config, {**self.options, "seed": 0})
        return _PLANNED[key]

    def for_model(self, name: str) -> Want:
        """The same number for another model, with its recommended configuration and the training options of this one.

        It is left out if the model does not support the data.
        """
        row = published.title(name)
        return dataclasses.replace(
            self, model=name, row=row, config={}, published=None, optional=True, ranked=True, figure_data=()
        )

    def columns(self) -> dict[str, str]:
        """The columns of this number in the published csv."""
        found = published.columns_of(self.data[0].spec().equation, self.inputs, self.model, self.metric)
        return found | dict(self.published or {})


def _validation(record: Record) -> float:
    """The best validation error of a run; infinite if there is none."""
    return math.inf if record.val is None or math.isnan(record.val) else record.val


_PLANNED: dict[tuple[Any, ...], RunSpec] = {}
"""Specs of runs; many cells share a run, which is planned once."""


@dataclass(frozen=True)
class Cell:
    """One number of a table: its place, the runs whose mean it is, and the published number.

    ``part`` is ``test`` or the label of a shift, whose dataset is ``shift``. ``published_keys`` are lines of the csv.
    ``pilots`` are the missing runs that choose the learning rate; until they are made, ``runs`` have that of the want.
    ``members``: how many members its datasets of laws have.
    """

    table: str
    group: str
    row: str
    column: str
    metric: str
    model: str
    runs: tuple[AnySpec, ...]
    part: str = "test"
    shift: DatasetSpec | None = None
    published: float | None = None
    published_std: float | None = None
    published_keys: tuple[int, ...] = ()
    figure_data: tuple[str, ...] = ()
    leaderboard: bool = False
    pilots: tuple[RunSpec, ...] = ()
    ranked: bool = True
    members: int = 1
    order: int = 0

    @property
    def next_runs(self) -> tuple[AnySpec, ...]:
        """The runs that can be made: those of the cell, or first the pilots that choose their learning rate."""
        return self.pilots or self.runs

    @property
    def further_metric(self) -> bool:
        """Whether its metric is computed for this table only: it is not one of those that every run is scored by."""
        return self.metric in METRICS and self.metric not in DEFAULT

    @property
    def label(self) -> str:
        """Group, row and column as text, for messages and for ``--only``."""
        return ", ".join(word for word in (self.group, self.row, self.column) if word)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table or figure. ``source`` is its label in the paper; ``draw`` are the commands that draw it.

    ``leaderboard``: a campaign with a budget gives each of its cells the value of a published number. ``edition``: the
    edition of its data if it exists in one edition only.
    """

    name: str
    title: str
    source: str
    kind: Literal["table", "figure"] = "table"
    wants: tuple[Want, ...] = ()
    notes: tuple[str, ...] = ()
    draw: tuple[str, ...] = ()
    leaderboard: bool = False
    edition: Edition | None = None

    def cells(self, seeds: int = 3, edition: Edition = "paper", records: Records | None = None) -> list[Cell]:
        """The wants with their runs, in order; a number that the paper prints twice belongs to two cells.

        ``records`` determine the learning rates that pilots have chosen.
        """
        if seeds < 1:
            raise UserError(f"seeds must be at least 1, got {seeds}")
        for name in dict.fromkeys(want.metric for want in self.wants):
            if name not in METRICS and name not in OTHER_METRICS:
                raise unknown(f"metric of table {self.name}", name, [*METRICS, *OTHER_METRICS])
        used: dict[int, int] = {}
        edition = self.edition or edition
        known = records or {}
        return [self._cell(want, seeds, edition, used, known) for want in self.wants if want.supported(edition)]

    def with_models(self, names: Iterable[str]) -> Table:
        """The table with a row for each of these models in every group whose data the model supports.

        The rows come before those of baselines and solver; the paper has no numbers for them.
        """
        present = {w.model for w in self.wants}
        new = [name for name in names if name not in present]
        if not new:
            return self
        out: list[Want] = []
        for group in dict.fromkeys(w.group for w in self.wants):
            members = [w for w in self.wants if w.group == group]
            learned = [w for w in members if w.model in MODELS and MODELS[w.model].trainable]
            first = {w.column: w for w in reversed(learned)}
            columns = [first[c] for c in dict.fromkeys(w.column for w in learned)]
            rows = [w.for_model(name) for name in new for w in columns]
            out += [*learned, *rows, *(w for w in members if w not in learned)]
        return dataclasses.replace(self, wants=tuple(out))

    def _cell(self, want: Want, seeds: int, edition: Edition, used: dict[int, int], records: Records) -> Cell:
        """The cell of a want; ``used`` counts how often each line of the csv is used already."""
        want, pilots = want.tuned(edition, records)
        numbers = () if want.published is None else published.find(self.source, want.columns())
        number = min(numbers, key=lambda n: (used.get(n.line, 0), n.line), default=None)
        if number is not None:
            used[number.line] = used.get(number.line, 0) + 1
        return Cell(
            table=self.name,
            group=want.group,
            row=want.row,
            column=want.column,
            metric=want.metric,
            model=want.model,
            runs=want.runs(seeds, edition),
            part=want.part,
            shift=want.test.spec(edition) if want.test else None,
            published=number.mean if number else None,
            published_std=number.std if number else None,
            published_keys=(number.line,) if number else (),
            figure_data=want.figure_data,
            leaderboard=self.leaderboard,
            pilots=pilots,
            ranked=want.ranked,
            members=(want.test or want.data[0]).members,
            order=want.order,
        )
