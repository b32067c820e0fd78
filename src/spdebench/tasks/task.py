"""A task: datasets, inputs, split and sub-sampling. Its spec identifies it; its parts are torch datasets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from spdebench import spec
from spdebench.data import Dataset, open_dataset
from spdebench.data.blocks import SPLIT_SEED
from spdebench.data.identity import check_seen
from spdebench.display import Displayed, TableRows
from spdebench.equations import Equation
from spdebench.equations.inputs import TASK_TEXT, Inputs
from spdebench.errors import UserError, unknown
from spdebench.tasks.defaults import subsampling
from spdebench.tasks.parts import Part
from spdebench.tasks.setting import Setting
from spdebench.tasks.split import BLOCKS, PARTS, Rows, RowsOfFile, rows_in, rows_of, weights

Source = Dataset | str | os.PathLike[str]

COMPARED, SAME_U0 = 64, 1e-6
"""Initial data of imported files: this many samples are compared, and differences relative to max |u0| up to this are
rounding."""

SAME_TIMES = 1e-6
"""Differences of times up to this, relative to the horizon, are rounding."""


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """Everything that defines a task except its datasets."""

    inputs: Inputs = "xi"
    split: str = BLOCKS  # 14:3:3 of every 20 samples; or weights of train, validation and test such as 70:15:15
    seed: int = SPLIT_SEED
    n: int = 0  # number of samples used of each dataset; 0: all
    every: int = 1  # keep every k-th frame; the increments in between are summed
    stride: int = 1  # keep every k-th point along each axis
    seen: int | None = field(default=None, metadata={"legacy": None})
    # a model is given the part of the noise that this truncation keeps; None: all of it

    def __post_init__(self) -> None:
        spec.check(self, "task")
        for key in ("every", "stride"):
            if getattr(self, key) < 1:
                raise UserError(f"task: {key} must be at least 1, got {getattr(self, key)}")
        if self.seed < 0:
            raise UserError(f"task: seed must not be negative, got {self.seed}")
        if self.n < 0:
            raise UserError(f"task: n must be positive (or 0 for all samples), got {self.n}")
        if self.seen is not None and self.seen < 0:
            raise UserError(f"task: seen is a truncation of the noise, at least 0, got {self.seen}")
        self.weights  # noqa: B018  (raises if the split is malformed)

    @property
    def weights(self) -> tuple[int, int, int]:
        """The relative sizes of train, val and test."""
        return weights(self.split)

    @property
    def text(self) -> str:
        """The task as people read it, with the view of the stored data: ``xi -> u with seen=8, every=2``."""
        view = {"seen": (self.seen, None), "every": (self.every, 1), "stride": (self.stride, 1)}
        given = ", ".join(f"{key}={value}" for key, (value, default) in view.items() if value != default)
        return f"{TASK_TEXT[self.inputs]} with {given}" if given else TASK_TEXT[self.inputs]

    def setting(self, equation: Equation) -> Setting:
        """The setting of this task on data of an equation; the data need not exist."""
        grid = equation.grid.with_points([n // self.stride for n in equation.grid.points])
        return Setting(grid, tuple(equation.times[:: self.every].tolist()), self.inputs, equation, self.seen)

    def noise_column(self, *datasets: Dataset) -> str:
        """The column of files with the noise that a model is given: dw, or dw_seen if only a part of it is seen.

        Files that have it in different columns are refused, because a part of a task reads one column of all its files.
        """
        (column, first), *others = ((self._column(dataset), dataset) for dataset in datasets)
        for found, other in others:
            if found != column:
                raise UserError(
                    f"task: the noise that is seen with seen={self.seen} is the column {column} of {first.path.name} "
                    f"and the column {found} of {other.path.name}; generate both with --seen {self.seen}"
                )
        return column

    def _column(self, dataset: Dataset) -> str:
        """`noise_column` of one file."""
        if self.seen is None:
            return "dw"
        if dataset.imported or dataset.spec.members > 1:
            raise UserError(f"task: seen={self.seen} needs samples whose noise is known; {dataset.path.name} has none")
        if dataset.spec.seen == self.seen:
            return "dw_seen"
        check_seen(dataset.equation, self.seen, "task: ")
        if self.seen == dataset.equation.truncation:
            return "dw"
        raise UserError(
            f"task: {dataset.path.name} does not store the noise that is seen with seen={self.seen}; generate it with "
            f"--seen {self.seen}"
        )

    def rows(self, total: int) -> Rows:
        """The rows of each part of a dataset with ``total`` rows."""
        n = self.n or total
        if n > total:
            raise UserError(f"task: n={n} samples asked for, the dataset has {total}")
        return rows_of(self.split, self.seed, n, total)

    def rows_in(self, dataset: Dataset, trained_on: Iterable[Mapping[str, Any]]) -> RowsOfFile:
        """The rows of each part of any file, in a task whose datasets have these identities; see `split.rows_in`."""
        return rows_in(dataset, self.split, self.seed, self.n, trained_on)


def default_setting(equation: Equation) -> Setting:
    """The setting of the equation's data in the task xi -> u, with the paper's sub-sampling."""
    return spec.build(TaskSpec, subsampling(equation), "task").setting(equation)


class Task(Displayed):
    """``Task(dataset, inputs="u0+xi")``: learn u from the noise (and the initial datum).

    ``data`` is a dataset, a path, or several with the same grid, times and number of samples (a mixture, for example
    over J; their parts are joined). Without ``inputs`` the task follows from the data; the sub-sampling is the paper's
    for this equation unless given. ``equation`` is the equation of imported data, for models that need to know it.
    ``task.train``, ``task.val`` and ``task.test`` are torch datasets.
    """

    def __init__(
        self,
        data: Source | Sequence[Source],
        inputs: Inputs | None = None,
        *,
        equation: Equation | None = None,
        **fields: Any,
    ) -> None:
        several = data if isinstance(data, (list, tuple)) else [data]
        self.datasets: tuple[Dataset, ...] = tuple(
            d if isinstance(d, Dataset) else open_dataset(d)  # type: ignore[arg-type]
            for d in several
        )
        if not self.datasets:
            raise UserError("task: expected a dataset, the path of one, or a list of them; got an empty list")
        first = self.datasets[0]
        _check_alike(self.datasets)
        if equation is not None and not first.imported:
            raise UserError(f"task: {first.path.name} states its equation; equation= is for imported data")
        self.equations: tuple[Equation, ...] = (
            ((equation,) * len(self.datasets) if equation else ())
            if first.imported
            else tuple(d.equation for d in self.datasets)
        )
        defaults: dict[str, Any] = {"inputs": inputs or self._inputs()}
        if self.equations:
            defaults |= subsampling(self.equations[0])
        self.spec: TaskSpec = spec.build(TaskSpec, defaults | fields, "task")
        self._check()

    def _inputs(self) -> Inputs:
        """The inputs that follow from the data: u0 is an input if it varies."""
        varies = any(e.task == "u0+xi" for e in self.equations) if self.equations else self._u0_varies()
        return "u0+xi" if varies else "xi"

    def _u0_varies(self) -> bool:
        """Whether the first samples of imported data, of all files together, have different initial data."""
        u0 = np.concatenate([each.read("u0", 0, min(COMPARED, len(each))) for each in self.datasets])
        return bool((np.abs(u0 - u0[:1]) > SAME_U0 * np.abs(u0).max()).any())

    def _check(self) -> None:
        """Refuse inputs, frames, points or noise that the files do not have."""
        first, s = self.datasets[0], self.spec
        for known in self.equations:
            if s.inputs == "u0+xi" and not known.kappa:
                raise UserError(
                    f"task {TASK_TEXT[s.inputs]} needs initial data that vary; {first.path.name} has one fixed u0 "
                    f"(kappa=0). Use inputs=xi, or generate with kappa=0.1"
                )
            if s.inputs == "xi" and known.kappa:
                raise UserError(
                    f"task {TASK_TEXT[s.inputs]} needs one fixed initial datum; that of {first.path.name} varies "
                    f"(kappa={known.kappa:g}). Use inputs=u0+xi, or generate with kappa=0"
                )
        if (len(first.times) - 1) % s.every:
            raise UserError(f"task: every must divide the {len(first.times) - 1} intervals stored, got {s.every}")
        for each in self.datasets:
            if not each.imported and each.spec.members > 1:
                raise UserError(f"task: {each.path.name} holds members of a law; give the file of samples next to it")
        s.noise_column(*self.datasets)  # raises if a file does not hold it
        for n in first.grid.points:
            if n % s.stride:
                raise UserError(f"task: stride must divide the {n} points stored, got {s.stride}")
        if s.stride > 1 and self.equations:
            kept = first.grid.with_points([n // s.stride for n in first.grid.points])
            if self.equations[0].series().aliases_on(kept):
                points = " x ".join(map(str, kept.points))
                raise UserError(
                    f"task: stride={s.stride} would keep the noise at {points} points, where its modes alias; generate "
                    f"such data with points={kept.points[0]} edition=converged, which keeps the low modes of the noise"
                )

    def overview(self) -> tuple[str, TableRows]:
        files = ", ".join(d.path.name for d in self.datasets)
        parts = (self.train, self.val, self.test)
        return f"Task {self.spec.text} of {files}", [part.row() for part in parts]

    @cached_property
    def setting(self) -> Setting:
        """The description of the data that models are built for."""
        part = self.train
        known = self.equations[0] if self.equations else None
        return Setting(part.grid, part.times, self.spec.inputs, known, self.spec.seen)

    @property
    def identity(self) -> dict[str, Any]:
        """The datasets and the spec, as they enter the spec of a run."""
        return {"datasets": [d.identity for d in self.datasets], "task": spec.to_dict(self.spec)}

    @cached_property
    def train(self) -> Part:
        return self.part("train")

    @cached_property
    def val(self) -> Part:
        return self.part("val")

    @cached_property
    def test(self) -> Part:
        return self.part("test")

    def part(self, name: str, *data: Source) -> Part:
        """The part called ``name`` of this task, or of other datasets with the same split and sub-sampling in time.

        ``task.part("test", other)`` is a test on another J, sigma, edition, grid or number of samples; it contains no
        sample whose noise is used for training or validation. The name ``all`` means every row.
        """
        others = tuple(d if isinstance(d, Dataset) else open_dataset(d) for d in data)
        datasets = others or self.datasets
        if others:
            equations = () if any(d.imported for d in others) else tuple(d.equation for d in others)
        else:
            equations = self.equations
        if name == "all":
            rows = [np.arange(len(d)) for d in datasets]
        elif name not in PARTS:
            raise unknown("part", name, (*PARTS, "all"))
        elif others:
            rows = [self._rows_of_other(name, d) for d in others]
        else:
            rows = [self.spec.rows(len(d))[name] for d in datasets]
        return Part(
            name,
            datasets,
            rows,
            every=self.spec.every,
            stride=1 if others else self.spec.stride,
            equations=equations,
            noise=self.spec.noise_column(*datasets),
        )

    def members(self) -> np.ndarray:
        """u of the members of the law given u0 and the seen noise, for each sample of the test part: (N M T X..).

        Member 0 is the sample itself. The frames and points are those of the task.
        """
        dataset = self.datasets[0]
        if len(self.datasets) > 1 or self.spec.seen is None or dataset.spec.seen != self.spec.seen:
            raise UserError("members belong to a task of one dataset with seen=K; generate with --seen K --members 64")
        if not np.array_equal(self.spec.rows(len(dataset))["test"], dataset.members_file.spec.inputs):
            raise UserError(
                "members are made for the test part of split=blocks with its default seed and all samples; use these"
            )
        return self.test.thinned(dataset.members())

    def _rows_of_other(self, name: str, dataset: Dataset) -> np.ndarray:
        """The rows of another dataset that belong to a part of this task."""
        rows = self.spec.rows_in(dataset, [d.identity for d in self.datasets]).parts[name]
        if not len(rows):
            raise UserError(
                f"task: {dataset.path.name} has no sample of the part '{name}' of this task; use a file with another "
                f"seed or with more samples"
            )
        return rows


def _check_alike(datasets: Sequence[Dataset]) -> None:
    """Refuse a mixture of equal files, or of files that differ in what its parts have once: numbers of samples and
    points, box, times."""
    first, *others = datasets
    rounding = SAME_TIMES * float(first.times[-1] - first.times[0])
    for other in others:
        unlike = ""
        if other.shapes != first.shapes or len(other) != len(first):
            unlike = "shape"
        elif other.grid != first.grid:
            unlike = "box or boundary condition"
        elif not np.allclose(other.times, first.times, rtol=0, atol=rounding):
            unlike = "the times of their frames"
        if unlike:
            raise UserError(f"task: {other.path.name} and {first.path.name} differ in {unlike}; they cannot be mixed")
    if len({spec.canonical_json(d.identity) for d in datasets}) < len(datasets):
        raise UserError("task: a dataset was given twice, so that its samples would count twice")
