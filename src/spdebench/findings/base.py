"""A finding: a statement about the published benchmark, its numbers, how they are computed, and the consequence."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from spdebench.data import Dataset, generate, open_dataset
from spdebench.data.flat import Source
from spdebench.data.published import import_published
from spdebench.display import TableRows
from spdebench.equations import Equation
from spdebench.errors import UserError
from spdebench.paper import published
from spdebench.records import Record, store
from spdebench.registry import Declarations
from spdebench.tasks import Task
from spdebench.training.train import train

Uses = Literal["fresh data", "run records", "published numbers", "formulas", "times measured here"]
"""The sources from which a finding computes its numbers; measured times differ from machine to machine."""


@dataclass(frozen=True)
class FindingResult:
    """The numbers in the sentence, by name, and a table."""

    numbers: Mapping[str, float]
    rows: TableRows = ()

    def __post_init__(self) -> None:
        bad = [name for name, value in self.numbers.items() if not math.isfinite(value)]
        if bad:
            raise UserError(f"this finding has no number for {', '.join(bad)}: there is nothing to compute it from")


@dataclass(frozen=True)
class Sources:
    """The sources of findings: run records, a folder for new data and runs, and a device."""

    scratch: Path
    results: Path | None = None
    device: str = "cpu"

    @cached_property
    def records(self) -> Mapping[str, Record]:
        """The run records, read once."""
        known = store.known(self.results)
        if not known:
            where = self.results or store.FOLDER
            raise UserError(f"no run record in {where}; this finding needs them: choose a folder with --results")
        return known

    def task(self, equation: Equation, n: int) -> Task:
        """The task xi -> u of n fresh samples of seed 0."""
        return Task(generate(equation, n=n, out=self.scratch, quiet=True))

    def error(self, model: str, task: Task, **config: Any) -> float:
        """Relative L2 on the test part of a model without a network, fitted here."""
        run = train(
            model, task, out=self.scratch / "runs", config=config, device=self.device, progress=False,
            keep_predictions=False,
        )  # fmt: skip
        return float(run.scores["rel_l2"].value)

    def open(self, path: Path) -> Dataset:
        """A native file, or a file of the published layout, which is imported into the scratch folder."""
        try:
            return open_dataset(path)
        except UserError:
            if not _is_flat(path):
                raise
        return open_dataset(import_published(path, self.scratch))


def check_equation(data: Dataset, name: str) -> None:
    """Refuse a generated file of another equation; that of an imported file is not known."""
    if not data.imported and data.equation.name != name:
        raise UserError(f"{data.path.name} has data of {data.equation.name}; this finding reads files of {name}")


def _is_flat(path: Path) -> bool:
    """Whether a file has the authors' published layout."""
    try:
        return {"T", "W", "sol"} <= set(Source(path).columns)
    except UserError:
        return False


@contextmanager
def sources(results: Path | None = None, device: str = "cpu") -> Iterator[Sources]:
    """Sources whose fresh data are removed at the end."""
    with tempfile.TemporaryDirectory(prefix="spdebench-findings-") as scratch:
        yield Sources(Path(scratch), results, device)


@dataclass(frozen=True)
class FindingOnFile:
    """The same finding for one data file: its sentence, and how its numbers are computed."""

    sentence: str
    compute: Callable[[Sources, Dataset], FindingResult]


@dataclass(frozen=True)
class Finding:
    """``title`` has no numbers, ``sentence`` is a format string for them; ``follows`` is the consequence."""

    name: str
    title: str
    sentence: str
    follows: str
    uses: tuple[Uses, ...]
    compute: Callable[[Sources], FindingResult]
    quick: bool = True  # a few seconds on one core
    on_file: FindingOnFile | None = field(default=None)

    @property
    def command(self) -> str:
        return f"spdebench findings {self.name}"

    def formula(self, *, on_file: bool = False) -> str:
        """The docstring of the computation."""
        function = self.on_file.compute if on_file and self.on_file else self.compute
        return " ".join((function.__doc__ or "").split())


CHAPTERS = ("regression", "floors", "speed", "constants", "noise", "information", "metrics", "printed")
"""Modules with findings, in the order of the page."""


def _builtin() -> None:
    for chapter in CHAPTERS:
        import_module(f"spdebench.findings.{chapter}")


FINDINGS: Declarations[Finding] = Declarations("finding", "findings", _builtin)
"""Findings by name."""


def ordered() -> list[Finding]:
    """All findings in the order of the page: by chapter, those of other packages last."""
    places = {f"spdebench.findings.{chapter}": k for k, chapter in enumerate(CHAPTERS)}
    return sorted(FINDINGS.values(), key=lambda f: places.get(f.compute.__module__, len(places)))


def declare(finding: Finding) -> Finding:
    """Register a finding."""
    FINDINGS.add(finding.name, finding)
    return finding


def printed(table: str, model: str, **columns: str) -> float:
    """The number that the paper prints in one of its tables; NaN if there is none."""
    wanted = {"metric": "rel_l2", "task": "xi->u", "model": model} | columns
    found = [n.mean for n in published.numbers() if n.table == table and wanted.items() <= n.columns.items()]
    return found[0] if found else math.nan


def best_printed(table: str, **columns: str) -> float:
    """The smallest number that the paper prints for any model in one of its tables; NaN if there is none."""
    wanted = {"metric": "rel_l2", "task": "xi->u"} | columns
    found = (n.mean for n in published.numbers() if n.table == table and wanted.items() <= n.columns.items())
    return min(found, default=math.nan)
