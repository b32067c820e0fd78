"""`train`: one protocol from a task to a finished run. Started again it goes on; a finished run is only opened."""

from __future__ import annotations

import copy
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spdebench import spec
from spdebench.data.generate import check_device, check_folder
from spdebench.errors import UserError, unknown
from spdebench.models import OperatorModel
from spdebench.models.features import Prepared, fits, prepare_part
from spdebench.progress import Progress
from spdebench.tasks import Task
from spdebench.training import checkpoints
from spdebench.training.board import Board, require_tensorboard
from spdebench.training.folder import Log, locked, read_json, sweep_up, write_json
from spdebench.training.identity import from_dict, identify
from spdebench.training.loop import Fit, validation
from spdebench.training.options import TrainOptions
from spdebench.training.provenance import now, peak_memory_mb, provenance, start_memory_watch
from spdebench.training.run import Run
from spdebench.training.scoring import LEAST, finish


@dataclass(frozen=True, kw_only=True)
class Means:
    """How a run is carried out; nothing here changes a number beyond rounding, so it is no part of the identity."""

    progress: bool | None = None  # a progress line; None: on a terminal
    graph: bool | None = None  # replay steps as CUDA graphs; None: on CUDA
    memory: float = 0.5  # share of the device's free memory that data may take; else they stay on the host
    checkpoint: float = 30.0  # seconds between checkpoints; 0: after each epoch
    cache: str | None = None  # folder in which costly features are kept between runs
    tensorboard: bool = False  # logs for TensorBoard in the run's folder

    def __post_init__(self) -> None:
        spec.check(self, "training")
        if self.checkpoint < 0:
            raise UserError(f"training: checkpoint is seconds, at least 0, got {self.checkpoint:g}")


def train(
    model: str | OperatorModel,
    task: Task,
    *,
    out: str | os.PathLike[str] = "runs",
    device: str = "cpu",
    config: Mapping[str, Any] | None = None,
    resume: bool = True,
    test: bool = True,
    keep_predictions: bool = True,
    pause: Callable[[float], bool] | None = None,
    **options: Any,
) -> Run:
    """Train on ``task.train``, choose weights on ``task.val``, score once on ``task.test``; all of it is a folder.

    ``model`` is a name (with ``config`` for its fields) or a model from `build`, which is left as it is: ``run.model``
    is the trained one. ``options`` are those of `TrainOptions` (epochs, batch, lr, ...) and of `Means` (progress,
    graph, checkpoint, ...). ``resume=False`` begins an unfinished run anew. ``test=False`` leaves the test part alone;
    asked for later, only the test is made. ``pause`` is asked after each epoch, with the seconds that another one and a
    checkpoint may take: if it says so, the checkpoint is written and `Paused` raised.
    """
    check_device(device)
    means, given = split_options(options)
    if means.tensorboard:
        require_tensorboard()
    identity = identify(model, task, config or {}, given)
    run = Run(Path(out) / identity.name, identity)
    if run.finished or (run.trained and not test):
        return _opened(run)
    _check_parts(task, identity.train_options, test)
    check_folder(Path(out))
    with locked(run.path), _current(device):
        if run.finished or (run.trained and not test):  # by whom we waited for
            return _opened(run)
        _claim(run, resume)
        try:
            if not run.trained:
                first = identity.build() if isinstance(model, str) else copy.deepcopy(model)
                _fit(run, first.to(device), task, means, pause)
            if test:
                finish(run, task.test, device, keep_predictions=keep_predictions)
        except torch.OutOfMemoryError:
            raise UserError(f"{run.name} does not fit the memory of {device}; try a smaller batch") from None
    return _opened(run)


def _current(device: str) -> AbstractContextManager[Any]:
    """Streams and graphs are those of this device."""
    return torch.cuda.device(device) if torch.device(device).type == "cuda" else nullcontext()


def split_options(options: Mapping[str, Any]) -> tuple[Means, dict[str, Any]]:
    """What changes no number, and what does."""
    how, what = spec.fields_of(Means), spec.fields_of(TrainOptions)
    for key in options:
        if key not in how and key not in what:
            raise unknown("option", key, [*how, *what])
    chosen = {k: os.fspath(v) if isinstance(v, os.PathLike) else v for k, v in options.items() if k in how}
    means = spec.build(Means, chosen, "training")
    return means, {k: v for k, v in options.items() if k in what}


def _check_parts(task: Task, options: TrainOptions, test: bool) -> None:
    if options.epochs and not len(task.val):
        raise UserError(f"the split {task.spec.split} leaves no sample for validation; try split=70:15:15")
    if test and len(task.test) < LEAST:
        raise UserError(f"the test part has {len(task.test)} samples; at least {LEAST} are needed to score")


def _opened(run: Run) -> Run:
    """The run, if what lies in its folder is what its name says."""
    found = from_dict(read_json(run.file("spec.json")), str(run.path))
    if found.digest != run.spec.digest:
        raise UserError(
            f"{run.path} holds run {found.digest}, not {run.spec.digest}; remove it or choose another --out"
        )
    return run


def _claim(run: Run, resume: bool) -> None:
    """Under the lock: make the folder this run's, or see that it is."""
    sweep_up(run.path)
    if run.file("spec.json").exists():
        _opened(run)
        if not resume:
            for name in ("last.pt", "best.pt", "log.jsonl"):
                run.file(name).unlink(missing_ok=True)
            shutil.rmtree(run.file("tensorboard"), ignore_errors=True)
    else:
        write_json(run.file("spec.json"), run.spec.to_dict())


def _fit(run: Run, model: OperatorModel, task: Task, means: Means, pause: Callable[[float], bool] | None) -> None:
    """Train from the start or from `last.pt`, and write `best.pt`."""
    options, last = run.spec.train_options, run.file("last.pt")
    start_memory_watch(model.device)
    started, clock = now(), time.perf_counter()
    train_data, val_data = _data(model, task, means)
    state = checkpoints.load(last, run.spec.digest) if last.exists() else None
    if state is None:
        calibrate(model, train_data)
    if not model.trainable:
        taken = time.perf_counter() - clock
        _end(run, model, started, weights=model.state_dict(), val=validation(model, val_data), seconds=taken)
        return
    fit = Fit(model, train_data, val_data, options, graph=means.graph)
    if state is not None:
        fit.load(state)
        started = state["started"]
    log = Log(run.file("log.jsonl"), fit.log)
    keeper = checkpoints.Keeper(last, run.spec.digest, means.checkpoint)
    board = Board(run.file("tensorboard"), fit.epoch) if means.tensorboard else None
    with Progress(options.epochs, "epochs", enabled=means.progress) as bar:
        bar.skip(fit.epoch)
        while not fit.finished:
            entry = fit.run_epoch()
            log.add(entry)
            pausing = pause is not None and not fit.finished and pause(2 * (entry["seconds"] + keeper.taken))
            keeper.offer(lambda: {**fit.state(), "started": started}, pausing)
            if board:
                board.add(entry)
            bar.advance(1, f"best val {fit.best:.4g} at {fit.best_epoch}")
            if pausing:
                raise checkpoints.Paused
    if board:
        board.close()
    seconds = sum(entry["seconds"] for entry in fit.log)
    _end(run, model, started, fit.best_weights, fit.best, seconds, fit.best_epoch, fit.epoch)


def _data(model: OperatorModel, task: Task, means: Means) -> tuple[Prepared, Prepared]:
    """Training and validation data on the device if they fit, else on the host."""
    cache = Path(means.cache) if means.cache else None
    place = model.device if fits(model, (task.train, task.val), means.memory) else torch.device("cpu")
    train_data, val_data = (prepare_part(model, part, place=place, cache=cache) for part in (task.train, task.val))
    return train_data, val_data


def calibrate(model: OperatorModel, data: Prepared) -> None:
    """Fit what is not learned, on the training part, where its data are."""
    home = model.device
    with torch.no_grad():
        model.to(data.device).calibrate(data.features, data.target)
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
) -> None:
    """Write `best.pt`: from now on the run is trained, and `last.pt` is of no use."""
    content = {
        "weights": weights,
        "val": val,
        "best_epoch": best_epoch,
        "epochs": epochs,
        "seconds": round(seconds, 3),
        "peak_memory_mb": peak_memory_mb(model.device),
        "provenance": provenance(model.device, started),
    }
    checkpoints.save(run.file("best.pt"), content, run.spec.digest)
    run.file("last.pt").unlink(missing_ok=True)
