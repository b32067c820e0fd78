"""`train`: from a task to a finished run. Called again it resumes the run; a finished run is only opened."""

from __future__ import annotations

import copy
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spdebench import spec
from spdebench.data.generate import check_device, check_folder
from spdebench.engines import is_out_of_memory
from spdebench.errors import UserError, unknown
from spdebench.models import OperatorModel
from spdebench.models.features import Chunks, Prepared, fits, flow_part, prepare_part, redrawn_part
from spdebench.progress import Progress
from spdebench.tasks import Task
from spdebench.tasks.split import LEAST_SCORED, working_split
from spdebench.tasks.task import Source
from spdebench.training import checkpoints
from spdebench.training.folder import Log, checkpoint_file, locked, read_json, remove_partial_files, write_json
from spdebench.training.identity import from_dict, identify
from spdebench.training.loop import Fit, validation
from spdebench.training.options import Loss, Precision, Scheduler, TrainOptions
from spdebench.training.provenance import now, peak_memory_mb, provenance, start_memory_watch
from spdebench.training.repair import is_complete, rename_damaged_files
from spdebench.training.run import Run
from spdebench.training.scoring import finish
from spdebench.training.tensorboard import TensorBoardLog, require_tensorboard

VALIDATION_DRAWS = 4
"""Draws for each sample by which loss=energy and loss=flow are validated; they are the same in all epochs."""


@dataclass(frozen=True, kw_only=True)
class ExecutionOptions:
    """How a run is carried out. Nothing here changes a number beyond rounding, so runs are not named by it."""

    progress: bool | None = None  # show a progress bar; None: on a terminal
    graph: bool | None = None  # replay the steps as CUDA graphs; None: on CUDA
    memory: float = 0.5  # share of the device's free memory that the data may take; otherwise they stay on the host
    checkpoint: float = 30.0  # seconds between checkpoints; 0: after each epoch
    cache: str | None = None  # folder in which expensive features are kept between runs
    tensorboard: bool = False  # write logs for TensorBoard into the run's folder
    force: bool = False  # continue from a checkpoint of another version or device; the record states both

    def __post_init__(self) -> None:
        spec.check(self, "training")
        if self.checkpoint < 0:
            raise UserError(f"training: checkpoint is a time in seconds, at least 0, got {self.checkpoint:g}")


def train(
    model: str | OperatorModel,
    task: Task | Source | Sequence[Source],
    *,
    out: str | os.PathLike[str] = "runs",
    device: str = "cpu",
    config: Mapping[str, Any] | None = None,
    resume: bool = True,
    test: bool = True,
    keep_predictions: bool = True,
    pause: Callable[[float], bool] | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    weight_decay: float | None = None,
    scheduler: Scheduler | None = None,
    plateau_patience: int | None = None,
    decay_factor: float | None = None,
    decay_every: int | None = None,
    min_learning_rate: float | None = None,
    early_stop_patience: int | None = None,
    early_stop_delta: float | None = None,
    clip_norm: float | None = None,
    loss: Loss | None = None,
    draws: int | None = None,
    seed: int | None = None,
    precision: Precision | None = None,
    compile: bool | None = None,
    progress: bool | None = None,
    graph: bool | None = None,
    memory: float | None = None,
    checkpoint: float | None = None,
    cache: str | os.PathLike[str] | None = None,
    tensorboard: bool | None = None,
    force: bool | None = None,
    **old_names: Any,
) -> Run:
    """Train on ``task.train``, choose the weights on ``task.val``, score once on ``task.test``; the run is a folder.

    ``model`` is a name (with ``config`` for its fields) or a model from `spdebench.model`, which is left as it is:
    ``run.model`` is the trained one. Datasets or their files stand for their `Task`. ``resume=False`` starts an
    unfinished run from the beginning. ``test=False`` does not read the test part; a later call with ``test=True`` only
    tests. ``pause`` is called after each epoch with the seconds that another epoch and a checkpoint may take: if it
    returns True, the checkpoint is written and `Paused` is raised. The arguments from ``epochs`` to ``compile`` are
    those of `TrainOptions`; None means the paper's value for this model and data. Those from ``progress`` on are those
    of `ExecutionOptions`. ``old_names`` are options under
    names that they once had.
    """
    given = {key: value for key, value in locals().items() if key in _OPTIONS and value is not None}
    execution, training = split_options({**given, **old_names})
    check_device(device)
    task = task if isinstance(task, Task) else Task(task)
    if execution.tensorboard:
        require_tensorboard()
    identity = identify(model, task, config or {}, training)
    run = Run(Path(out) / identity.name, identity)
    if is_complete(run, test):
        _remove_last(run)  # which a process left that died between its last two steps
        return _opened(run)
    _check_parts(task, identity.train_options, test)
    check_folder(Path(out))
    with locked(run.path), _current(device):
        rename_damaged_files(run)
        if is_complete(run, test):  # finished by the process that had the lock
            return _opened(run)
        _claim(run, resume)
        try:
            if run.trained:
                _remove_last(run)  # which a process left that died between its last two steps
            else:
                first = identity.build() if isinstance(model, str) else copy.deepcopy(model)
                _fit(run, first.to(device), task, execution, pause)
            if test:
                finish(run, task.test, device, keep_predictions=keep_predictions)
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise UserError(f"{run.name} does not fit into the memory of {device}; try a smaller batch_size") from None
    return _opened(run)


def _current(device: str) -> AbstractContextManager[Any]:
    """A context in which this device is the current one, for streams and graphs."""
    return torch.cuda.device(device) if torch.device(device).type == "cuda" else nullcontext()


_OPTIONS = {**spec.fields_of(ExecutionOptions), **spec.fields_of(TrainOptions)}


def split_options(options: Mapping[str, Any]) -> tuple[ExecutionOptions, dict[str, Any]]:
    """Options that change no number, and those that do."""
    how, old = spec.fields_of(ExecutionOptions), spec.renamed(TrainOptions)
    for key in options:
        if key not in _OPTIONS and key not in old:
            raise unknown("option", key, _OPTIONS)
    chosen = {k: os.fspath(v) if isinstance(v, os.PathLike) else v for k, v in options.items() if k in how}
    return spec.build(ExecutionOptions, chosen, "training"), {k: v for k, v in options.items() if k not in how}


def _check_parts(task: Task, options: TrainOptions, test: bool) -> None:
    n = task.spec.n or len(task.datasets[0])
    if options.epochs and not len(task.val):
        raise UserError(f"{n} samples with split={task.spec.split} leave none for validation; {working_split(n)}")
    if test and len(task.test) < LEAST_SCORED:
        raise UserError(
            f"{n} samples with split={task.spec.split} leave {len(task.test)} for the test, at least {LEAST_SCORED} "
            f"are needed to score; {working_split(n)}"
        )


def _opened(run: Run) -> Run:
    """The run, after a check that its folder holds this run and no other."""
    found = from_dict(read_json(run.file("spec.json")), str(run.path))
    if found.digest != run.spec.digest:
        raise UserError(
            f"{run.path} holds run {found.digest}, not {run.spec.digest}; remove it or choose another --out"
        )
    return run


def _claim(run: Run, resume: bool) -> None:
    """Write the spec into a new folder, or check that an existing one is this run's; to be called under the lock."""
    remove_partial_files(run.path)
    if run.file("spec.json").exists():
        _opened(run)
        if not resume:
            for name in ("last.safetensors", "best.safetensors", "last.pt", "best.pt", "log.jsonl"):
                _remove(run.file(name))
            shutil.rmtree(run.file("tensorboard"), ignore_errors=True)
    else:
        write_json(run.file("spec.json"), run.spec.to_dict())


def _fit(
    run: Run, model: OperatorModel, task: Task, execution: ExecutionOptions, pause: Callable[[float], bool] | None
) -> None:
    """Train from the start or from the last checkpoint, and write the best weights."""
    options, last = run.spec.train_options, checkpoint_file(run.path, "last")
    start_memory_watch(model.device)
    started, clock = now(), time.perf_counter()
    if model.streams:
        with torch.no_grad():
            error = model.calibrate_stream(Chunks(model, task.train), Chunks(model, task.val))
        _end(run, model, started, weights=model.state_dict(), val=error, seconds=time.perf_counter() - clock)
        return
    train_data, val_data = _data(model, task, options, execution)
    state, resumed = _last_state(run, last, model, execution.force)
    if state is None:
        calibrate(model, train_data)
    if not model.trainable:
        taken = time.perf_counter() - clock
        _end(run, model, started, weights=model.state_dict(), val=validation(model, val_data), seconds=taken)
        return
    fit = Fit(model, train_data, val_data, options, graph=execution.graph)
    if state is not None:
        started = _continue(fit, state, last)
    _run_epochs(run, fit, execution, {"started": started, "resumed": resumed}, pause)
    seconds = sum(entry["seconds"] for entry in fit.log)
    _end(run, model, started, fit.best_weights, fit.best, seconds, fit.best_epoch, fit.epoch, resumed)


def _last_state(run: Run, last: Path, model: OperatorModel, force: bool) -> tuple[dict[str, Any] | None, list[str]]:
    """The checkpoint, if there is one, and which other versions or devices have written it and those before it."""
    if not last.exists():
        return None, []
    state = checkpoints.load(last, run.spec.digest)
    resumed = [str(line) for line in state["resumed"]] if isinstance(state.get("resumed"), list) else []
    differs = checkpoints.check_made(state, model.device.type)
    if differs and not force:
        raise UserError(
            f"{last} was written with {differs}; remove it to train from the start, or use --force to continue from "
            f"it, which the record will state"
        )
    return state, [*resumed, differs] if differs else resumed


def _continue(fit: Fit, state: dict[str, Any], last: Path) -> str:
    """Resume from a checkpoint; returns when its training started."""
    try:
        fit.load(state)
        return str(state["started"])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
        line = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise UserError(f"{last} does not fit its run ({line}); remove it to train from the start") from None


def _run_epochs(
    run: Run, fit: Fit, execution: ExecutionOptions, origin: dict[str, Any], pause: Callable[[float], bool] | None
) -> None:
    """Run all epochs that are left, with log, checkpoints and progress bar; `Paused` if ``pause`` asks for it."""
    log = Log(run.file("log.jsonl"), fit.log)
    keeper = checkpoints.CheckpointWriter(
        run.file("last.safetensors"), run.spec.digest, execution.checkpoint, fit.device.type
    )
    board = TensorBoardLog(run.file("tensorboard"), fit.epoch) if execution.tensorboard else None
    with Progress(fit.options.epochs, "epochs", enabled=execution.progress) as bar:
        bar.skip(fit.epoch)
        while not fit.finished:
            entry = fit.run_epoch()
            log.add(entry)
            pausing = pause is not None and not fit.finished and pause(2 * (entry["seconds"] + keeper.taken))
            keeper.offer(lambda: {**fit.state(), **origin}, pausing)
            if board:
                board.add(entry)
            bar.advance(1, f"best {fit.val_name} {fit.best:.4g} at {fit.best_epoch}")
            if pausing:
                raise checkpoints.Paused
    log.close()
    if board:
        board.close()


def _data(
    model: OperatorModel, task: Task, options: TrainOptions, execution: ExecutionOptions
) -> tuple[Prepared, Prepared]:
    """Training and validation data on the device if they fit, else on the host.

    With loss=energy their unseen noise is drawn: for the training part anew in each epoch, for validation once. With
    loss=flow times and states are, when the model is calibrated; a state and a target need as much as a feature.
    """
    cache = Path(execution.cache) if execution.cache else None
    draws = {"energy": (options.draws, VALIDATION_DRAWS), "flow": (3, 3 * VALIDATION_DRAWS)}.get(options.loss, (0, 0))
    parts = dict(zip((task.train, task.val), draws, strict=True))
    place = model.device if fits(model, parts, execution.memory) else torch.device("cpu")
    if options.loss == "flow":
        train_pairs = flow_part(model, task.train, 1, options.seed, place)
        return train_pairs, flow_part(model, task.val, VALIDATION_DRAWS, options.seed, place)
    if options.loss == "energy":
        train_part = redrawn_part(model, task.train, options.draws, options.seed, 0, place)
        return train_part, redrawn_part(model, task.val, VALIDATION_DRAWS, options.seed, None, place)
    train_data, val_data = (prepare_part(model, part, place=place, cache=cache) for part in (task.train, task.val))
    return train_data, val_data


def calibrate(model: OperatorModel, data: Prepared) -> None:
    """Fit the model's normalisers on the training part, on the device of the data."""
    home = model.device
    features = {key: values[: len(data)] for key, values in data.features.items()}  # of the first draw
    with torch.no_grad():
        model.to(data.device).calibrate(features, data.target)
    model.to(home)


def _end(
    run: Run,
    model: OperatorModel,
    started: str,
    weights: dict[str, Tensor],
    val: float | None,
    seconds: float,
    best_epoch: int = 0,
    epochs: int = 0,
    resumed: Sequence[str] = (),
) -> None:
    """Write the best weights: from now on the run is trained, and its checkpoint is removed."""
    content = {
        "weights": weights,
        "val": val,
        "best_epoch": best_epoch,
        "epochs": epochs,
        "seconds": round(seconds, 3),
        "peak_memory_mb": peak_memory_mb(model.device),
        "provenance": provenance(model.device, started) | ({"resumed": list(resumed)} if resumed else {}),
    }
    checkpoints.save(run.file("best.safetensors"), content, run.spec.digest, model.device.type)
    _remove_last(run)


def _remove_last(run: Run) -> None:
    """Remove the checkpoint of a run that is trained; one that cannot be removed is of no harm."""
    for name in ("last.safetensors", "last.pt"):
        with suppress(UserError):
            _remove(run.file(name))


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"cannot remove {path} ({error.strerror}); remove it yourself") from None
