"""The plan of a table: which runs are done, begun or missing, and about how long the remaining ones take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from spdebench.campaign.rates import SCORING_SECONDS, Rates
from spdebench.data import DatasetSpec
from spdebench.data.identity import dataset_of
from spdebench.files import MOST_LINES, read_bytes
from spdebench.models import MODELS
from spdebench.paper import published
from spdebench.paper.base import AnySpec, Cell
from spdebench.paper.catalogue import TABLES
from spdebench.paper.figure_data import kinds_of_run
from spdebench.records import Record, Records
from spdebench.training import RunSpec
from spdebench.training.folder import checkpoint_file
from spdebench.training.law_rows import LawRowSpec
from spdebench.training.provenance import device_type
from spdebench.training.solver_row import lacks_floor

CountsFor = int | tuple[str, str, str]
"""The line of a published number, or the table, group and row of a leaderboard."""
Status = Literal["done", "finished", "begun", "missing"]
UNPUBLISHED = 0.01  # numbers for which a run counts that no published number and no leaderboard waits for


@dataclass(frozen=True)
class Job:
    """One run that a table needs, and what is still to be done for it.

    status       ``done`` (in the records), ``finished`` (only in its folder), ``begun`` or ``missing``
    seconds      about how long the rest takes
    shifts       further datasets, by label, on which it is still to be scored
    metrics      metrics beyond the usual ones that its record lacks, by part
    figure_data  what its record lacks for figures
    counts_for   what needs it: published numbers (their lines in `published.csv`) and rows of leaderboards (table,
                 group, row)
    pilot        whether it is a short run that tries a learning rate for another run
    seconds_with_run  for a pilot: seconds of all pilots of that run and of the run itself
    members      number of members in its datasets of laws
    order, group  jobs of a lower group are made first, and within a group those of a lower order
    recorded     whether it has a record
    lacking      why a recorded run is made again: what its record lacks and the folder of a finished run cannot give
    """

    spec: AnySpec
    status: Status
    seconds: float
    shifts: Mapping[str, DatasetSpec] = field(default_factory=dict)
    metrics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    figure_data: tuple[str, ...] = ()
    counts_for: frozenset[CountsFor] = frozenset()
    pilot: bool = False
    seconds_with_run: float = 0.0
    members: int = 1
    order: int = 0
    group: int = 0
    recorded: bool = False
    lacking: tuple[str, ...] = ()

    @property
    def numbers(self) -> int:
        return len(self.counts_for)

    @property
    def cost(self) -> float:
        """Seconds for each number that needs it; a run that none needs counts as a hundredth of a number."""
        return max(self.seconds_with_run, self.seconds) / max(self.numbers, UNPUBLISHED)

    @property
    def seed(self) -> int:
        return int(self.spec.options["seed"]) if isinstance(self.spec, RunSpec) else 0

    @property
    def trained(self) -> bool:
        """Whether gradient steps train it, for at least one epoch."""
        return isinstance(self.spec, RunSpec) and bool(self.spec.options["epochs"])

    @property
    def datasets(self) -> list[DatasetSpec]:
        return [dataset_of(values) for values in self.spec.datasets]


def jobs(
    cells: Iterable[Cell], records: Records, runs: str | Path = "runs", device: str = "cpu", *, remake: bool = False
) -> list[Job]:
    """The runs that cells need, each once, in the order of the cells.

    ``remake``: only runs with a record, as if they had none; their times are still estimated from the records.
    """
    cells = list(cells)
    rates = Rates(records, device)
    known: Records = {} if remake else records
    groups = _groups_with_pilots(cells)
    wanted: dict[str, AnySpec] = {}
    shifts: dict[str, dict[str, DatasetSpec]] = defaultdict(dict)
    metrics: dict[str, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    figure_data: dict[str, dict[str, None]] = defaultdict(dict)
    counts_for: dict[str, set[CountsFor]] = defaultdict(set)
    pilots: dict[str, Cell] = {}
    members: dict[str, int] = defaultdict(lambda: 1)
    orders: dict[str, int] = {}
    group_numbers: dict[str, int] = {}
    for cell in cells:
        pilots |= {run.digest: cell for run in cell.pilots}
        needed_by: set[CountsFor] = set(cell.published_keys)
        if cell.leaderboard:
            needed_by.add((cell.table, cell.group, cell.row))
        for place, run in enumerate(cell.next_runs):
            wanted.setdefault(run.digest, run)
            members[run.digest] = max(members[run.digest], cell.members)
            orders[run.digest] = min(orders.get(run.digest, cell.order), cell.order)
            group_numbers.setdefault(run.digest, groups.get((cell.table, cell.group), len(groups)))
            counts_for[run.digest] |= needed_by
            figure_data[run.digest] |= dict.fromkeys(kinds_of_run(cell.figure_data, place))
            if cell.shift is not None and not cell.pilots:
                shifts[run.digest][cell.part] = cell.shift
            if cell.further_metric and not cell.pilots and not isinstance(run, LawRowSpec):
                metrics[run.digest][cell.part][cell.metric] = None
    found = {
        digest: replace(
            _job(
                run, shifts[digest], metrics[digest], tuple(figure_data[digest]), known.get(digest), Path(runs), rates
            ),
            counts_for=frozenset(counts_for[digest]),
            pilot=digest in pilots,
            members=members[digest],
            order=orders[digest],
            group=group_numbers[digest],
            recorded=digest in records,
        )
        for digest, run in wanted.items()
    }
    for digest, cell in pilots.items():
        left = sum(found[run.digest].seconds for run in cell.pilots) + rates.seconds(cell.runs[0])
        found[digest] = replace(found[digest], seconds_with_run=left)
    return [job for job in found.values() if job.recorded or not remake]


def _groups_with_pilots(cells: Iterable[Cell]) -> dict[tuple[str, str], int]:
    """(Table, group) -> number, for tables where pilots still choose learning rates. The groups are made in this order,
    one after another, so that a campaign that is stopped has finished some of them."""
    cells = list(cells)
    tables = {cell.table for cell in cells if cell.pilots}
    found = dict.fromkeys((cell.table, cell.group) for cell in cells if cell.table in tables)
    return {group: number for number, group in enumerate(found)}


def _job(
    run: AnySpec,
    shifts: Mapping[str, DatasetSpec],
    metrics: Mapping[str, Iterable[str]],
    figure_data: tuple[str, ...],
    record: Record | None,
    runs: Path,
    rates: Rates,
) -> Job:
    """The job of a run: its status, the seconds that remain, and what its ``record`` (None: it has none) lacks."""
    folder = runs / run.name
    scored, recorded_data = (record.shifts, record.figure_data.names) if record else ({}, ())
    lacking = {part: record.not_scored(names, part) if record else tuple(names) for part, names in metrics.items()}
    open_metrics = {part: names for part, names in lacking.items() if names}
    open_shifts = {label: data for label, data in shifts.items() if label not in scored or label in open_metrics}
    open_data = tuple(name for name in figure_data if name not in recorded_data)
    later = SCORING_SECONDS * (len(open_shifts) + bool(open_data or open_metrics))
    absent = dict.fromkeys(name for names in open_metrics.values() for name in names)
    if record is not None and lacks_floor(record):
        return Job(run, "missing", rates.seconds(run), metrics=open_metrics, lacking=tuple(absent))
    if record is not None and not open_shifts and not open_metrics and not open_data:
        return Job(run, "done", 0.0)
    left: dict[str, Any] = {"shifts": open_shifts, "metrics": open_metrics, "figure_data": open_data}
    if (folder / "record.json").exists():
        return Job(run, "finished", later, **left)
    also_shown = _figure_data_needed().get(run.digest, ())  # its folder may be gone later
    left["figure_data"] = tuple(dict.fromkeys((*open_data, *also_shown)))
    left["lacking"] = (*absent, *open_data, *open_shifts) if record else ()
    if checkpoint_file(folder, "best").exists():  # trained, but not tested
        return Job(run, "begun", SCORING_SECONDS + later, **left)
    whole = rates.seconds(run)
    done = _epochs_logged(folder / "log.jsonl")
    if checkpoint_file(folder, "last").exists() and done:
        share = max(0.05, 1 - done / max(1.0, rates.epochs(run)))
        return Job(run, "begun", share * whole + later, **left)
    return Job(run, "missing", whole + later, **left)


@cache
def _figure_data_needed() -> dict[str, tuple[str, ...]]:
    """Digest -> figure data that some figure of the catalogue needs of a run, whichever table the run is made for."""
    cells = [cell for each in TABLES if each.kind == "figure" for cell in each.cells() if cell.figure_data]
    return {
        run.digest: names
        for cell in cells
        for place, run in enumerate(cell.runs)
        if (names := tuple(kinds_of_run(cell.figure_data, place)))
    }


def _epochs_logged(path: Path) -> int:
    try:
        return read_bytes(path, MOST_LINES).count(b"\n")
    except OSError:
        return 0


# --- the published numbers ----------------------------------------------------------------------------------------
def published_status(cells: Iterable[Cell], records: Records) -> list[dict[str, Any]]:
    """One entry per published number: line, table, digests of its runs, and how far they are."""
    by_line = {line: cell for cell in cells for line in cell.published_keys}
    out = []
    for number in published.numbers():
        cell = by_line.get(number.line)
        entry: dict[str, Any] = {"line": number.line, "table": number.table, "digests": [], "status": "no cell"}
        if cell is not None:
            digests = [run.digest for run in cell.runs]
            have = [d for d in digests if d in records and records[d].value(cell.metric, cell.part) is not None]
            status = "done" if len(have) == len(digests) else "begun" if have else "missing"
            entry |= {"digests": digests, "status": status, "cell": f"{cell.table}: {cell.label}"}
        out.append(entry)
    return out


# --- overview -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class WaitingRun:
    """A run that can start when the pilots with these digests have ended."""

    job: Job
    pilots: frozenset[str]


def waiting(
    cells: Sequence[Cell], records: Records, runs: str | Path = "runs", device: str = "cpu"
) -> list[WaitingRun]:
    """The runs that cannot start before pilots have chosen their learning rate, with that of the table until then."""
    pilots: dict[str, set[str]] = defaultdict(set)
    for cell in cells:
        for run in cell.runs:
            pilots[run.digest] |= {pilot.digest for pilot in cell.pilots}
    every = jobs([replace(cell, pilots=()) for cell in cells if cell.pilots], records, runs, device)
    return [WaitingRun(job, frozenset(pilots[job.spec.digest])) for job in every]


def overview(
    cells: Sequence[Cell], todo: Sequence[Job], data: str | Path, waiting_runs: Sequence[Job] = ()
) -> dict[str, Any]:
    """Counts and seconds by table and in all, the runs, which of them are made again although they have a record, and
    the datasets that must be made first.

    ``waiting_runs`` are the runs that wait for pilots; ``seconds`` count them too.
    """
    by_digest = {job.spec.digest: job for job in todo}
    waits = {job.spec.digest: job for job in waiting_runs}
    tables = []
    for name in dict.fromkeys(c.table for c in cells):
        own = [c for c in cells if c.table == name]
        digests = dict.fromkeys(run.digest for c in own for run in c.next_runs)
        after = dict.fromkeys(run.digest for c in own if c.pilots for run in c.runs if run.digest in waits)
        tables.append(_counted(name, len(own), [by_digest[d] for d in digests], [waits[d] for d in after]))
    missing = _missing_data([*todo, *waiting_runs], Path(data))
    return {
        "tables": tables,
        "total": _counted("total", len(cells), todo, waiting_runs),
        "runs": [
            {"digest": j.spec.digest, "name": j.spec.name, "seed": j.seed, "status": j.status, "seconds": j.seconds}
            for j in todo
        ],
        "made_again": {j.spec.name: list(j.lacking) for j in todo if j.lacking},
        "datasets": {
            "missing": [d.file_name for d in missing],
            "bytes": sum(d.total * d.sample_bytes for d in missing),
        },
    }


def shorter_requests(cells: Sequence[Cell], records: Records, runs: str | Path, device: str) -> dict[str, float]:
    """Option -> seconds: smaller requests that take less time than all of these cells on a CPU; empty on a GPU."""
    if device_type(device) == "cuda":
        return {}
    here = jobs(cells, records, runs, device)
    quick = {job.spec.model: job.seconds for job in here if job.status != "done" and not is_trained(job.spec.model)}
    first = [replace(cell, runs=cell.runs[:1]) for cell in cells]
    found = {
        "--device cuda": sum(job.seconds for job in jobs(cells, records, runs, "cuda")),
        "--seeds 1": sum(job.seconds for job in jobs(first, records, runs, device)),
    }
    if quick:
        found[f"--only {','.join(quick)}"] = sum(job.seconds for job in here if job.spec.model in quick)
    whole = sum(job.seconds for job in here)
    return {option: seconds for option, seconds in found.items() if 0 < seconds < whole}


def is_trained(model: str) -> bool:
    """Whether gradient steps fit the model; the solver, the baselines and the rows of true laws have none."""
    return model in MODELS and MODELS[model].trainable


def _counted(name: str, cells: int, startable: Sequence[Job], waiting_runs: Sequence[Job]) -> dict[str, Any]:
    """One row of the overview: numbers of cells and of runs by status, and the seconds of all runs."""
    states = ("done", "finished", "begun", "missing")
    counts = {state: sum(1 for j in startable if j.status == state) for state in states} | {
        "waiting": len(waiting_runs)
    }
    every = [*startable, *waiting_runs]
    return {"table": name, "cells": cells, "runs": len(every), **counts, "seconds": sum(j.seconds for j in every)}


def _missing_data(todo: Iterable[Job], folder: Path) -> list[DatasetSpec]:
    """The datasets that jobs need and that are not in the folder, each once."""
    needed: dict[str, DatasetSpec] = {}
    for job in todo:
        own = job.datasets if job.status in ("begun", "missing") else []
        for each in (*own, *job.shifts.values()):
            several = [each] if each.seen is None or job.members == 1 else [each, replace(each, members=job.members)]
            needed |= {d.file_name: d for d in several}
    return [d for file, d in needed.items() if not (folder / file).exists()]
