"""One run of a campaign, in any process: its data, training, scores on other data, and its record."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from spdebench import engines
from spdebench.campaign.deadline import OutOfTime, until
from spdebench.campaign.exclusive_timing import others_running
from spdebench.campaign.portable import SMALL_MODEL
from spdebench.campaign.unit import Places, RunOutcome, Unit
from spdebench.data import Dataset, DatasetSpec, generate, open_dataset
from spdebench.data.identity import dataset_of
from spdebench.errors import Damaged, UserError, without_aliasing_warning
from spdebench.files import set_aside
from spdebench.paper.base import AnySpec
from spdebench.paper.figure_data import add_figure_data
from spdebench.records import Provenance, Record, store
from spdebench.records.codec import decode
from spdebench.records.record import TEST
from spdebench.spec import canonical_json
from spdebench.tasks import Part, Task
from spdebench.training import Diverged, Paused, Run, RunSpec, law_rows, open_run, part_for, score_on, train
from spdebench.training import solver_row as solver
from spdebench.training.folder import checkpoint_file, locked, read_log, read_record, write_json
from spdebench.training.held_out import run_part
from spdebench.training.law_rows import LawRowSpec
from spdebench.training.members import SEEN_NOISE
from spdebench.training.provenance import provenance
from spdebench.training.scoring import add_metrics
from spdebench.training.solver_row import SolverSpec
from spdebench.training.train import check_source

FAILED = "failed.json"  # in a run's folder: why it failed, until it is begun again
CHECKPOINT = 10.0  # seconds between checkpoints, or more where they take long; one is written when a budget ends


def make_run(unit: Unit) -> RunOutcome:
    """Make one run and add its record; an error of one run is an outcome, not an exception."""
    name = unit.spec.name
    folder, start, left = unit.folder, time.monotonic(), unit.deadline.seconds_left
    if left <= 0:
        return RunOutcome(name, "left")
    if not unit.wait_for_others and engines.holder_of(folder):
        return RunOutcome(name, "busy")
    if unit.seconds > left:
        if unit.must_end:
            return RunOutcome(name, "late")
        if unit.portable and not small_model(unit.spec):
            return RunOutcome(name, "left")
    unit = replace(unit, exclusive=unit.exclusive and not others_running(unit.places.runs, name))
    with suppress(OSError):
        (folder / FAILED).unlink(missing_ok=True)
    try:
        with until(unit.deadline), without_aliasing_warning():
            record = _record_even_if_diverged(unit)
    except (OutOfTime, Paused):
        written = any(checkpoint_file(folder, kind).exists() for kind in ("last", "best"))
        message = "its checkpoint is written" if written else "without a checkpoint: it begins anew next time"
        return RunOutcome(name, "paused", time.monotonic() - start, message)
    except UserError as error:
        return failed_outcome(unit, str(error), time.monotonic() - start)
    except Exception as error:
        traceback.print_exc()
        reason = f"{type(error).__name__}: {error}"
        return failed_outcome(unit, reason, time.monotonic() - start, traceback.format_exc())
    finally:
        engines.release(unit.device)
    return _add(record, unit.places, time.monotonic() - start)


def small_model(spec: AnySpec) -> bool:
    """Whether an unfinished run of this model can be carried to another machine."""
    return isinstance(spec, RunSpec) and spec.build().counts()["real"] <= SMALL_MODEL


def failed_outcome(unit: Unit, reason: str, seconds: float = 0.0, trace: str = "") -> RunOutcome:
    """The outcome of a run that an error ended, or whose worker was killed each time.

    The reason is written into the run's folder, if the disk allows; it is removed when the run is started again.
    """
    with suppress(UserError):
        write_json(unit.folder / FAILED, {"reason": reason, "trace": trace})
    return RunOutcome(unit.spec.name, "failed", seconds, reason)


def _add(record: Record, places: Places, seconds: float = 0.0) -> RunOutcome:
    """Add the record of a run that has ended to the results."""
    try:
        new = store.add(places.results, record)
    except UserError as error:
        return RunOutcome(record.name, "unrecorded", seconds, str(error), record)
    return RunOutcome(record.name, "added" if new else "known", seconds, "", record)


def has_record(places: Places, spec: AnySpec) -> bool:
    """Whether a run has a record that can be read; it may be that of another run, which is an error later."""
    path = Path(places.runs) / spec.name / "record.json"
    try:
        return path.exists() and bool(read_record(path))
    except Damaged:
        return False


def collect(spec: AnySpec, places: Places, force: bool = False) -> RunOutcome:
    """Add the record of a run that was finished but never recorded; ``force``: also if its model was edited since."""
    path = Path(places.runs) / spec.name
    try:
        if isinstance(spec, RunSpec):
            run = open_run(path)
            check_source(run, force=force)
            record = run.record
        else:
            record = read_record(path / "record.json")
    except UserError as error:
        return RunOutcome(spec.name, "failed", 0.0, str(error))
    return _add(record, places)


def _record_even_if_diverged(unit: Unit) -> Record:
    """The record of the run; a pilot that diverges has one without scores, so that it is not tried again."""
    try:
        return _make(unit)
    except Diverged:
        if not unit.pilot or not isinstance(unit.spec, RunSpec):
            raise
        with locked(unit.folder):
            return _written(_record_of_divergence(unit.spec, unit.folder, unit.device), unit)


def _record_of_divergence(spec: RunSpec, folder: Path, device: str) -> Record:
    """The record of a pilot whose loss became infinite or NaN: no scores, and the validation error NaN."""
    return Record(
        digest=spec.digest,
        name=spec.name,
        model=spec.model,
        config=spec.config,
        datasets=spec.datasets,
        task=spec.task,
        options=spec.options,
        initial=spec.initial,
        val=math.nan,
        epochs=len(read_log(folder / "log.jsonl")),
        provenance=decode(Provenance, provenance(device), "provenance"),
    )


def _written(record: Record, unit: Unit) -> Record:
    """The record of a run that has ended just now, written into its folder with whether others were made meanwhile.

    Scores may be added later by another command, while others run or not, and the time stays the one measured now.
    """
    alone = unit.exclusive and not others_running(unit.places.runs, unit.spec.name)
    timed = alone and record.inference_ms is not None
    record = replace(record, exclusive_timing=timed, shared_device=not alone)
    write_json(unit.folder / "record.json", record.to_dict())
    return record


def _make(unit: Unit) -> Record:
    """Train the model or measure the reference row, score it on further data, and add what figures need."""
    if isinstance(unit.spec, SolverSpec):
        return _measure_solver(unit.spec, unit)
    if isinstance(unit.spec, LawRowSpec):
        return _measure_law(unit.spec, unit)
    run = _train(unit.spec, unit)
    for label, dataset in unit.shifts.items():
        part = run_part(run, open_dataset(_dataset_file(dataset, unit)))
        shown = part if dataset.seen is None else part.showing(SEEN_NOISE)
        score_on(run, shown, label, device=unit.device)
        add_metrics(run, shown, unit.metrics.get(label, ()), label, device=unit.device)
    if TEST in unit.metrics:
        add_metrics(run, _task(unit.spec, unit).test, unit.metrics[TEST], device=unit.device)

    def test_part() -> Part:
        return part_for(run, ensure_dataset(dataset_of(run.spec.datasets[0]), unit.places.data, "cpu", unit.force))

    add_figure_data(run, unit.figure_data, test_part)
    return run.record


def _train(spec: RunSpec, unit: Unit) -> Run:
    """Train the model of a run, or continue its training, until the deadline."""
    if has_record(unit.places, spec):
        finished = open_run(unit.folder)
        check_source(finished, force=unit.force)
        return finished
    run = train(
        spec.model,
        _task(spec, unit),
        out=unit.places.runs,
        device=unit.device,
        config=spec.config,
        keep_predictions=spec.options["seed"] == 0,
        progress=unit.progress,
        force=unit.force,
        checkpoint=CHECKPOINT,
        pause=lambda seconds: unit.deadline.seconds_left < seconds,
        cache=str(Path(unit.places.data) / "features"),
        **vars(spec.train_options),
    )
    if run.spec.digest != spec.digest:
        raise UserError(f"{spec.name} was trained as {run.name}: the plan has another spec; report this as an error")
    with locked(unit.folder):
        made = run.record
        if not (made.exclusive_timing or made.shared_device):  # else another process has made it, and knows
            _written(made, unit)
    return run


def _measure_solver(spec: SolverSpec, unit: Unit) -> Record:
    known = store.read(unit.places.results).get(spec.digest)
    if known is not None and solver.lacks_floor(known):
        return solver.with_floor(known, unit.device)
    names = dict.fromkeys(name for names in unit.metrics.values() for name in names)
    return _measure(spec, unit, lambda dataset: solver.measure(spec, dataset, unit.device, names))


def _measure_law(spec: LawRowSpec, unit: Unit) -> Record:
    return _measure(spec, unit, lambda dataset: law_rows.measure(spec, dataset, unit.device))


def _measure(spec: SolverSpec | LawRowSpec, unit: Unit, measure: Callable[[Dataset], Record]) -> Record:
    """The record of a reference row, in a folder like that of a run."""
    folder = unit.folder
    dataset = open_dataset(_dataset_file(spec.dataset, unit))
    with locked(folder):
        readable = has_record(unit.places, spec)
        if not readable or unit.metrics:
            if not readable and (folder / "record.json").exists():
                set_aside(folder / "record.json")
            return _written(measure(dataset), unit)
    return read_record(folder / "record.json")


KEPT_TASKS = 3
_TASKS: dict[str, Task] = {}
"""The tasks that this process has used last, by the canonical JSON of their folder, datasets and fields."""


def _task(spec: RunSpec, unit: Unit) -> Task:
    """The task of a run; the last few stay in memory, so that runs on the same data read them once."""
    key = canonical_json([unit.places.data, list(spec.datasets), spec.task])
    task = _TASKS.pop(key, None)
    if task is None:
        paths = [_dataset_file(dataset_of(d), unit) for d in spec.datasets]
        task = Task(paths, **spec.task)
        while len(_TASKS) >= KEPT_TASKS:
            del _TASKS[next(iter(_TASKS))]
    _TASKS[key] = task
    return task


def _dataset_file(dataset: DatasetSpec, unit: Unit) -> Path:
    """The file of a dataset that the run needs, generated on the device of the run if it does not exist."""
    return ensure_dataset(dataset, unit.places.data, unit.device, unit.force, unit.members)


def ensure_dataset(dataset: DatasetSpec, folder: str, device: str, force: bool = False, members: int = 1) -> Path:
    """The dataset's file, generated if it does not exist; if several processes need it, one generates it. A dataset
    with ``seen`` gets ``members`` members of the law in a second file.
    """
    return generate(
        dataset.equation,
        n=dataset.n,
        seed=dataset.seed,
        chunk=dataset.chunk,
        seen=dataset.seen,
        members=1 if dataset.seen is None else members,
        out=folder,
        device=device,
        allow_aliasing=True,  # where a table has such data, its notes say so
        quiet=True,
        force=force,
    )
