"""Fit the model of a run: prepare the data, calibrate, run all epochs with checkpoints, and write the best weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spdebench.errors import UserError
from spdebench.models import OperatorModel
from spdebench.models.features import Chunks, Prepared, fits, flow_part, prepare_part, redrawn_part
from spdebench.progress import Progress
from spdebench.tasks import Task
from spdebench.training import checkpoints
from spdebench.training.execution import ExecutionOptions
from spdebench.training.folder import Log, checkpoint_file, remove_file
from spdebench.training.loop import Fit, validation
from spdebench.training.options import TrainOptions
from spdebench.training.provenance import now, peak_memory_mb, provenance, start_memory_watch
from spdebench.training.run import Run
from spdebench.training.tensorboard import TensorBoardLog

VALIDATION_DRAWS = 4
"""Draws for each sample by which loss=energy and loss=flow are validated; they are the same in all epochs."""


def fit_run(
    run: Run, model: OperatorModel, task: Task, execution: ExecutionOptions, pause: Callable[[float], bool] | None
) -> None:
    """Train from the start or from the last checkpoint, and write the best weights."""
    options, last = run.spec.train_options, checkpoint_file(run.path, "last")
    start_memory_watch(model.device)
    started, clock = now(), time.perf_counter()
    if model.streams:
        with torch.no_grad():
            error = model.calibrate_stream(Chunks(model, task.train), Chunks(model, task.val))
        _write_best(run, model, started, weights=model.state_dict(), val=error, seconds=time.perf_counter() - clock)
        return
    train_data, val_data = _prepared(model, task, options, execution)
    state, resumed = _last_state(run, last, model, execution.force)
    if state is None:
        calibrate(model, train_data)
    if not model.trainable:
        taken = time.perf_counter() - clock
        _write_best(run, model, started, weights=model.state_dict(), val=validation(model, val_data), seconds=taken)
        return
    fit = Fit(model, train_data, val_data, options, graph=execution.graph)
    if state is not None:
        started = _continue(fit, state, last)
    _run_epochs(run, fit, execution, {"started": started, "resumed": resumed}, pause)
    seconds = sum(entry["seconds"] for entry in fit.log)
    _write_best(run, model, started, fit.best_weights, fit.best, seconds, fit.best_epoch, fit.epoch, resumed)


def _last_state(run: Run, last: Path, model: OperatorModel, force: bool) -> tuple[dict[str, Any] | None, list[str]]:
    """The checkpoint (None if there is none), and the other versions or devices that have trained the run so far."""
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
    """Resume from a checkpoint; returns the time when its training started."""
    try:
        fit.load(state)
        return str(state["started"])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
        line = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise UserError(f"{last} does not fit its run ({line}); remove it to train from the start") from None


def _run_epochs(
    run: Run, fit: Fit, execution: ExecutionOptions, origin: dict[str, Any], pause: Callable[[float], bool] | None
) -> None:
    """Run the remaining epochs, with log, checkpoints and progress bar; raises `Paused` if ``pause`` returns True."""
    log = Log(run.file("log.jsonl"), fit.log)
    writer = checkpoints.CheckpointWriter(
        run.file("last.safetensors"), run.spec.digest, execution.checkpoint, fit.device.type
    )
    board = TensorBoardLog(run.file("tensorboard"), fit.epoch) if execution.tensorboard else None
    progress = Progress(fit.options.epochs, "epochs", enabled=execution.progress)
    with progress as bar, closing(board) if board else nullcontext():
        bar.skip(fit.epoch)
        while not fit.finished:
            entry = fit.run_epoch()
            log.add(entry)
            pausing = pause is not None and not fit.finished and pause(2 * (entry["seconds"] + writer.taken))
            writer.offer(lambda: {**fit.state(), **origin}, pausing)
            if board:
                board.add(entry)
            bar.advance(1, f"best {fit.val_name} {fit.best:.4g} at {fit.best_epoch}")
            if pausing:
                raise checkpoints.Paused
    log.close()


def _prepared(
    model: OperatorModel, task: Task, options: TrainOptions, execution: ExecutionOptions
) -> tuple[Prepared, Prepared]:
    """Training and validation data on the device if they fit, else on the host.

    With loss=energy the unseen noise is drawn: in each epoch for the training part, once for validation. With loss=flow
    times and states are drawn after the model is calibrated; a state and a target need as much memory as a feature.
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
    train_data, val_data = (prepare_part(model, part, device=place, cache=cache) for part in (task.train, task.val))
    return train_data, val_data


def calibrate(model: OperatorModel, data: Prepared) -> None:
    """Fit the model's normalisers on the training part, on the device of the data."""
    home = model.device
    features = {key: values[: len(data)] for key, values in data.features.items()}  # those of the first draw
    with torch.no_grad():
        model.to(data.device).calibrate(features, data.target)
    model.to(home)


def _write_best(
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
    """Write the best weights, after which the run counts as trained, and remove its checkpoint."""
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
    remove_checkpoint(run)


def remove_checkpoint(run: Run) -> None:
    """Remove the checkpoint of a trained run; if it cannot be removed, this does no harm."""
    for name in ("last.safetensors", "last.pt"):
        with suppress(UserError):
            remove_file(run.file(name))
