"""Fill the missing cells: make the data, train, test on other data where wanted, and put every finished run into the
records at once. Whatever stops it, the same command goes on from there.

What is not trained comes first, then the first seed of everything, and of that the longest runs. A worker keeps the
data of its last tasks.
"""

from __future__ import annotations

import fcntl
import gc
import os
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from spdebench import engines
from spdebench.data import DatasetSpec, generate, open_dataset
from spdebench.data.generate import check_device, check_folder
from spdebench.errors import UserError, folding_known
from spdebench.experiments import records, solver, times
from spdebench.experiments.base import AnySpec, dataset_of
from spdebench.experiments.plan import Job
from spdebench.experiments.solver import SolverSpec
from spdebench.experiments.stopping import FOREVER, OutOfTime, end_with_parent, interrupt_reaches_workers, until
from spdebench.spec import canonical_json
from spdebench.tasks import Task
from spdebench.training import Run, RunSpec, open_run, part_for, score_on, train
from spdebench.training.folder import locked, read_json, write_json

CHECKPOINT = 10.0  # seconds between checkpoints: the most that a budget's end can lose


@dataclass(frozen=True)
class Places:
    """Where data, runs and records lie, and what runs are made on (several devices take turns)."""

    data: str = "data"
    runs: str = "runs"
    results: str = "results"
    devices: tuple[str, ...] = ("cpu",)


@dataclass(frozen=True)
class Unit:
    """One run to make: all that a worker needs."""

    spec: AnySpec
    shifts: dict[str, DatasetSpec]
    places: Places
    device: str
    deadline: float
    alone: bool = True
    progress: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of a run: ``added``, ``known`` already, ``kept`` in its folder only, ``paused``, ``left`` or
    ``failed``; the message says why."""

    name: str
    state: Literal["added", "known", "kept", "paused", "left", "failed"]
    seconds: float = 0.0
    message: str = ""
    record: dict[str, Any] = field(default_factory=dict, compare=False)


Report = Callable[[Outcome], None]


def fill_missing(
    todo: Sequence[Job],
    places: Places,
    *,
    workers: int = 1,
    budget: float | None = None,
    report: Report | None = None,
    progress: bool = False,
) -> list[Outcome]:
    """Make every run that is not done, as far as the ``budget`` (seconds) goes."""
    for device in places.devices:
        check_device(device)
    records.check_writable(places.results)
    check_folder(Path(places.runs))
    started = time.time()
    outcomes: list[Outcome] = []

    def say(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if report:
            report(outcome)

    ready = [j for j in todo if j.status == "finished" and not j.shifts]
    for job in ready:
        say(_collect(job.spec, places))
    rest = sorted((j for j in todo if j.status != "done" and j not in ready), key=_order)
    if rest and budget is not None:
        _check_budget(rest, budget)
    deadline = FOREVER if budget is None else started + budget
    reserve = _timing_reserve(todo, budget) if workers > 1 else 0.0
    count = len(places.devices)
    units = [
        Unit(
            j.spec,
            dict(j.shifts),
            places,
            places.devices[k % count],
            deadline - reserve,
            alone=workers == 1,
            progress=progress and workers == 1,
        )
        for k, j in enumerate(rest)
    ]
    with interrupt_reaches_workers(workers):
        for outcome in engines.run(work, units, workers):
            say(outcome)
    _retime(todo, places, deadline)
    return outcomes


def _order(job: Job) -> tuple[bool, int, float]:
    return job.trained, job.seed, -job.seconds


def _timing_reserve(todo: Sequence[Job], budget: float | None) -> float:
    """Seconds of the budget that are kept for taking times alone: about two for each model and equation."""
    if budget is None:
        return 0.0
    return min(0.1 * budget, 2.0 * len({(j.spec.model, str(j.spec.datasets[0]["equation"])) for j in todo}))


def _retime(todo: Sequence[Job], places: Places, deadline: float) -> None:
    """Now that nothing runs beside it, take the time of one run of each kind again that was not timed alone."""
    known = records.read(places.results)
    for record in times.untimed((known[j.spec.digest] for j in todo if j.spec.digest in known), known):
        for device in places.devices:
            if time.time() >= deadline:
                return
            if short := times.retime(record, device):
                records.add(places.results, short)
                break


def _check_budget(rest: Sequence[Job], budget: float) -> None:
    least = min(rest, key=lambda j: j.seconds)
    if budget < least.seconds:
        raise UserError(
            f"a budget of {budget:.0f} s is too small for even one run: the shortest that is left, {least.spec.name}, "
            f"takes about {least.seconds:.0f} s; give a larger --budget, or none"
        )


# --- one run ------------------------------------------------------------------------------------------------------
def work(unit: Unit) -> Outcome:
    """Make one run and add its record; never raises for what is one run's trouble."""
    end_with_parent()
    name = unit.spec.name
    start = time.time()
    if start >= unit.deadline:
        return Outcome(name, "left")
    try:
        with until(unit.deadline), folding_known():
            record = _make(unit)
    except OutOfTime:
        return Outcome(name, "paused", time.time() - start, "its checkpoint is kept")
    except UserError as error:
        return Outcome(name, "failed", time.time() - start, str(error))
    except Exception as error:
        traceback.print_exc()
        return Outcome(name, "failed", time.time() - start, f"{type(error).__name__}: {error}")
    finally:
        _release(unit.device)
    return _add(record | ({"alone": True} if unit.alone else {}), unit.places, time.time() - start)


def _release(device: str) -> None:
    """Give the device's memory back: other processes share it."""
    if torch.device(device).type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()


def _add(record: dict[str, Any], places: Places, seconds: float = 0.0) -> Outcome:
    try:
        new = records.add(places.results, record)
    except UserError as error:
        return Outcome(record["name"], "kept", seconds, str(error), record)
    return Outcome(record["name"], "added" if new else "known", seconds, "", record)


def _collect(spec: AnySpec, places: Places) -> Outcome:
    """A run that was finished, but never added."""
    path = Path(places.runs) / spec.name
    try:
        record = read_json(path / "record.json") if isinstance(spec, SolverSpec) else open_run(path).record
    except UserError as error:
        return Outcome(spec.name, "failed", 0.0, str(error))
    return _add(record, places)


def _make(unit: Unit) -> dict[str, Any]:
    if isinstance(unit.spec, SolverSpec):
        return _measure_solver(unit.spec, unit)
    run = _trained(unit.spec, unit)
    own = unit.spec.datasets[0]["seed"]
    for label, dataset in unit.shifts.items():
        path = ensure(dataset, unit.places.data, unit.device)
        part = part_for(run, path, "test" if dataset.seed == own else "all")
        score_on(run, part, label, device=unit.device)
    return run.record


def _trained(spec: RunSpec, unit: Unit) -> Run:
    path = Path(unit.places.runs) / spec.name
    if (path / "record.json").exists():
        return open_run(path)
    run = train(
        spec.model,
        _task(canonical_json([list(spec.datasets), spec.task]), spec, unit),
        out=unit.places.runs,
        device=unit.device,
        config=spec.config,
        keep_predictions=spec.options["seed"] == 0,
        progress=unit.progress,
        checkpoint=CHECKPOINT,
        cache=str(Path(unit.places.data) / "features"),
        **spec.options,
    )
    if run.spec.digest != spec.digest:
        raise UserError(f"{spec.name} was trained as {run.name}: the plan and the protocol differ; report this")
    return run


def _measure_solver(spec: SolverSpec, unit: Unit) -> dict[str, Any]:
    folder = Path(unit.places.runs) / spec.name
    dataset = open_dataset(ensure(spec.dataset, unit.places.data, unit.device))
    with locked(folder):
        if not (folder / "record.json").exists():
            write_json(folder / "record.json", solver.measure(spec, dataset, unit.device))
    return read_json(folder / "record.json")


_TASKS: dict[str, Task] = {}
KEPT_TASKS = 3


def _task(key: str, spec: RunSpec, unit: Unit) -> Task:
    """The task of a run; the last few stay in memory, so that runs on the same data read them once."""
    task = _TASKS.pop(key, None)
    if task is None:
        paths = [ensure(dataset_of(d), unit.places.data, unit.device) for d in spec.datasets]
        task = Task(paths, **spec.task)
        while len(_TASKS) >= KEPT_TASKS:
            del _TASKS[next(iter(_TASKS))]
    _TASKS[key] = task
    return task


def ensure(dataset: DatasetSpec, folder: str, device: str) -> Path:
    """The dataset's file, made if it is not there; one process of a folder makes data at a time."""
    path = Path(folder) / dataset.file_name
    if path.exists():
        return path
    check_folder(Path(folder))
    Path(folder).mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with folding_known():
            return generate(
                dataset.equation, n=dataset.n, seed=dataset.seed, chunk=dataset.chunk, out=folder, device=device
            )
    finally:
        os.close(descriptor)
