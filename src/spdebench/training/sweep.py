"""A search over hyper-parameters by validation error; the test part is never read."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spdebench.errors import UserError
from spdebench.tasks import Task
from spdebench.tasks.task import Source
from spdebench.training.execution import split_options
from spdebench.training.identity import identify
from spdebench.training.loop import Diverged
from spdebench.training.options import LAW_LOSSES
from spdebench.training.overrides import sort_overrides
from spdebench.training.run import Run
from spdebench.training.train import train


@dataclass(frozen=True)
class Trial:
    """One combination: its values, its best validation error (None if it diverged) and its run."""

    values: dict[str, Any]
    val: float | None
    run: Run | None
    note: str = ""


Report = Callable[[int, int, dict[str, Any]], None]
"""Called before each trial: its number, how many there are, its values."""


def combinations(choices: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations of the choices; the last key varies fastest."""
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


def sweep(
    model: str,
    task: Task | Source | Sequence[Source],
    choices: Mapping[str, Sequence[Any]],
    *,
    out: str | os.PathLike[str] = "runs",
    device: str = "cpu",
    report: Report | None = None,
    **options: Any,
) -> list[Trial]:
    """Train every combination of ``choices`` (fields of the model's configuration and training options), best first.

    ``options`` are further arguments of `train`. Each trial is the run that `train` makes, without its test: calling
    `train` with the same values later only tests it.
    """
    task = task if isinstance(task, Task) else Task(task)
    trials = combinations(choices)
    requests = [sort_overrides(model, values) for values in trials]
    if any(request.task for request in requests):
        raise UserError("a sweep has one task; vary fields of the model and training options only")
    execution, fixed = split_options(options)
    losses = {request.options.get("loss", fixed.get("loss")) for request in requests}
    if len(losses) > 1 and (laws := [loss for loss in LAW_LOSSES if loss in losses]):
        raise UserError(
            f"loss={laws[0]} is validated by its own error and other losses by the relative L2 error; sweep one"
        )
    for request in requests:  # check all of them before the first is trained
        identify(model, task, request.config, {**fixed, **request.options})
    found = []
    for number, (values, request) in enumerate(zip(trials, requests, strict=True), 1):
        if report:
            report(number, len(trials), values)
        given = {**vars(execution), **fixed, **request.options}
        try:
            run = train(model, task, out=out, device=device, config=request.config, test=False, **given)
            found.append(Trial(values, run.val, run))
        except Diverged as error:
            found.append(Trial(values, None, None, str(error)))
    return sorted(found, key=lambda trial: math.inf if trial.val is None else trial.val)
