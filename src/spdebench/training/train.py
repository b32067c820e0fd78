"""`train`: from a task to a finished run. Called again it resumes the run; a finished run is only opened."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch

from spdebench.data.checks import check_device, check_folder
from spdebench.engines import is_out_of_memory
from spdebench.errors import UserError
from spdebench.models import MODELS, OperatorModel
from spdebench.registry import changed_source, source
from spdebench.tasks import Task
from spdebench.tasks.split import LEAST_SCORED, working_split
from spdebench.tasks.task import Source
from spdebench.training.execution import OPTIONS, split_options
from spdebench.training.fitting import fit_run, remove_checkpoint
from spdebench.training.folder import locked, read_json, remove_file, remove_partial_files, write_json
from spdebench.training.identity import from_dict, identify
from spdebench.training.options import Loss, Precision, Scheduler, TrainOptions
from spdebench.training.repair import is_complete, rename_damaged_files
from spdebench.training.run import Run
from spdebench.training.scoring import finish
from spdebench.training.tensorboard import require_tensorboard


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
    """Train on ``task.train``, choose the weights on ``task.val`` and score once on ``task.test``; returns the run.

    The run is a folder in ``out``. ``model`` is a name (with ``config`` for its fields) or a model from
    `spdebench.model`, which is not changed: ``run.model`` is the trained one. Instead of a `Task` one can give datasets
    or their files. ``resume=False`` starts an unfinished run from the beginning. ``test=False`` does not read the test
    part; a later call with ``test=True`` only tests. ``pause`` is called after each epoch with the seconds that another
    epoch and a checkpoint may take: if it returns True, the checkpoint is written and `Paused` is raised.

    The arguments from ``epochs`` to ``compile`` are those of `TrainOptions`; None means the paper's value for this
    model and data. Those from ``progress`` on are those of `ExecutionOptions`. ``old_names`` are options under former
    names.
    """
    given = {key: value for key, value in locals().items() if key in OPTIONS and value is not None}
    execution, training = split_options({**given, **old_names})
    check_device(device)
    task = task if isinstance(task, Task) else Task(task)
    if execution.tensorboard:
        require_tensorboard()
    identity = identify(model, task, config or {}, training)
    run = Run(Path(out) / identity.name, identity)
    check_source(run, resume, execution.force)
    if is_complete(run, test):
        remove_checkpoint(run)  # left by a process that was killed just before it removed the checkpoint
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
                remove_checkpoint(run)  # as above
            else:
                first = identity.build() if isinstance(model, str) else copy.deepcopy(model)
                fit_run(run, first.to(device), task, execution, pause)
            if test:
                finish(run, task.test, device, keep_predictions=keep_predictions)
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            less = "a smaller batch_size" + " or fewer draws" * (identity.train_options.loss == "energy")
            raise UserError(f"{run.name} does not fit into the memory of {device}; try {less}") from None
    return _opened(run)


def _current(device: str) -> AbstractContextManager[Any]:
    """A context in which this device is the current one, for streams and graphs."""
    return torch.cuda.device(device) if torch.device(device).type == "cuda" else nullcontext()


def _check_parts(task: Task, options: TrainOptions, test: bool) -> None:
    """Refuse a split without samples for validation or with too few for the test."""
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
                remove_file(run.file(name))
            shutil.rmtree(run.file("tensorboard"), ignore_errors=True)
    else:
        write_json(run.file("spec.json"), run.spec.to_dict())
    if version := source(MODELS[run.spec.model]):
        write_json(run.file("source.json"), {"model": version})


def check_source(run: Run, resume: bool = True, force: bool = False) -> None:
    """Refuse to continue or to show a run if the user's own file that declares the model has changed since."""
    file, model = run.file("source.json"), MODELS[run.spec.model]
    stated = read_json(file).get("model") if source(model) and file.exists() else None
    if (changed := changed_source(stated, model)) and not force and (resume or run.finished):
        raise UserError(
            f"{run.path} was made with {changed}; remove the folder to train again, or keep it with --force"
        )
