"""Time of a training epoch, ours against plain eager training, at the paper's phi41 size.

plain     batches copied from the host, features computed for each batch, every operation of torch launched on its own,
          the loss read back after every step; the same network, loss and optimiser
compiled  plain, with the network compiled by torch.compile (on request: compiling takes up to minutes a model)
alone     our loop: data on the device, features kept, the step replayed as a CUDA graph, one synchronisation per epoch
together  the same in several processes at once (on a GPU best under the vendor's multi-process service)

An epoch is that of 840 samples in batches of 20 with its validation on 180; ``gain`` is plain / together.
"""

from __future__ import annotations

import math
import multiprocessing
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spdebench.accel import without_kernels
from spdebench.data import generate
from spdebench.engines import release
from spdebench.equations import EQUATIONS
from spdebench.errors import UserError, first_line
from spdebench.models import MODELS, OperatorModel
from spdebench.models.features import prepare_part
from spdebench.tasks import Task
from spdebench.timing import timed
from spdebench.training.fitting import calibrate
from spdebench.training.identity import RunSpec, identify
from spdebench.training.loop import Fit
from spdebench.training.losses import RelativeLoss
from spdebench.training.steps import adam

STEPS = 10  # plain steps that are timed, after as many for warm-up
EPOCHS = 3
ENDLESS: dict[str, Any] = {"epochs": 1000, "early_stop_patience": 0}


def bench(
    names: Sequence[str] = (),
    *,
    device: str = "cuda",
    together: int = 8,
    samples: int = 1200,
    compiled: bool = False,
    measured: Callable[[dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """One row per model: ms per epoch (plain, alone, and together: wall time / epochs of all), gain, and errors.

    ``compiled`` adds plain training of the compiled network, NaN where torch.compile fails. ``measured`` is called with
    the row of each model as soon as it is there, without the times of several runs at once, which are measured last.
    """
    chosen = list(names) or _trained()
    for name in chosen:
        if name not in _trained():
            raise UserError(f"model '{name}' is not trained on paths; choose among {', '.join(_trained())}")
    with tempfile.TemporaryDirectory() as folder:
        path = generate(EQUATIONS["phi41"](), n=samples, out=folder, device=device)
        task = Task(path)
        rows = []
        for name in chosen:
            with without_kernels():
                times = {"plain": _plain(name, task, device)}
                if compiled:
                    times["compiled"] = _compiled(name, task, device)
            alone, fit = _alone(name, task, device)
            rows.append({"model": name, **times, "alone": alone, "val": fit.log[-1]["val"], "graph": fit.graph})
            del fit
            release(device)
            if measured is not None:
                measured(rows[-1])
        shared = _together(chosen, path, device, together) if together > 1 else [row["alone"] for row in rows]
    return [row | {"together": ms, "gain": row["plain"] / ms} for row, ms in zip(rows, shared, strict=True)]


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def _trained() -> list[str]:
    """Models that are trained to predict paths; networks with a loss of their own, which predict laws, are left out."""
    return [n for n in MODELS if MODELS[n].trainable and MODELS[n].law_loss != "flow"]


# --- plain --------------------------------------------------------------------------------------------------------
def _plain(name: str, task: Task, device: str, *, compiled: bool = False) -> float:
    """ms per epoch, steps and validation, extrapolated from a few steps."""
    run = identify(name, task, {}, ENDLESS)
    model, options = run.build().to(device), run.train_options
    calibrate(model, prepare_part(model, task.train))
    network: Callable[[Any], Tensor] = torch.compile(model) if compiled else model
    optimiser = adam(model, options.learning_rate, options.weight_decay, torch.device(device))
    assert options.loss != "energy" and options.loss != "flow"
    loss = RelativeLoss(options.loss, model.setting.grid, torch.device(device))
    order = torch.randperm(len(task.train))[: STEPS * options.batch_size].split(options.batch_size)

    def step(rows: torch.Tensor) -> None:
        target = task.train.u[rows].to(device)
        features = model.prepare(task.train.batch(rows).to(device))
        optimiser.zero_grad()
        value = loss(network(features), target, loss.scale(target))
        value.backward()
        if options.clip_norm:
            torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip_norm)
        optimiser.step()
        value.item()

    def steps() -> None:
        for rows in order:
            step(rows)

    steps()
    each = timed(steps, device)[1] / len(order)
    return 1e3 * (
        each * math.ceil(len(task.train) / options.batch_size) + _plain_validation(model, network, task, loss, device)
    )


def _compiled(name: str, task: Task, device: str) -> float:
    """`_plain` with torch.compile; NaN, with a warning, if the compiler fails."""
    try:
        return _plain(name, task, device, compiled=True)
    except RuntimeError as error:
        warnings.warn(f"torch.compile fails on {name}: {first_line(error)}", stacklevel=2)
        return math.nan
    finally:
        torch.compiler.reset()


@torch.no_grad()
def _plain_validation(
    model: OperatorModel, network: Callable[[Any], Tensor], task: Task, loss: RelativeLoss, device: str
) -> float:
    def once() -> None:
        for start in range(0, len(task.val), 100):
            rows = slice(start, start + 100)
            target = task.val.u[rows].to(device)
            features = model.prepare(task.val.batch(rows).to(device))
            float((loss.errors(network(features), target) * loss.scale(target)).sum())

    model.eval()
    once()
    return timed(once, device)[1]


# --- ours ---------------------------------------------------------------------------------------------------------
def prepared(run: RunSpec, task: Task, device: str, *, graph: bool | None = None) -> Fit:
    """The model of a run with its data and features on the device, before its first epoch."""
    model = run.build().to(device)
    train, val = (prepare_part(model, part) for part in (task.train, task.val))
    calibrate(model, train)
    return Fit(model, train, val, run.train_options, graph=graph)


def _alone(name: str, task: Task, device: str) -> tuple[float, Fit]:
    fit = prepared(identify(name, task, {}, ENDLESS), task, device)
    fit.run_epoch()  # captures
    return 1e3 * min(fit.run_epoch()["seconds"] for _ in range(EPOCHS)), fit


def _together(names: Sequence[str], path: Path, device: str, count: int) -> list[float]:
    """For each model, ms of wall time per epoch while ``count`` processes train it at the same time."""
    context = multiprocessing.get_context("spawn")
    start, end = context.Barrier(count), context.Barrier(count)
    pipes, processes = [], []
    for _ in range(count):
        mine, theirs = context.Pipe()
        process = context.Process(target=_worker, args=(list(names), path, device, start, end, theirs), daemon=True)
        process.start()
        theirs.close()
        pipes.append(mine)
        processes.append(process)
    try:
        return [_collect(pipes) / (count * EPOCHS) for _ in names]
    finally:
        for process in processes:
            process.terminate()


def _collect(pipes: Sequence[Connection]) -> float:
    """The longest time of all workers, ms."""
    try:
        return max(float(pipe.recv()) for pipe in pipes)
    except EOFError:
        raise UserError(
            "a worker ended before it was timed (out of memory?); measure fewer at a time with --together"
        ) from None


def _worker(names: list[str], path: Path, device: str, start: Any, end: Any, pipe: Connection) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    task = Task(path)
    for name in names:
        fit = prepared(identify(name, task, {}, ENDLESS), task, device)
        fit.run_epoch()
        start.wait()
        began = time.perf_counter()
        for _ in range(EPOCHS):
            fit.run_epoch()
        end.wait()
        pipe.send(1e3 * (time.perf_counter() - began))
        del fit
        release(device)
