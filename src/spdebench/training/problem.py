"""Three reference errors of a problem (a dataset and a task), which put the error of a model into context.

    floor            the error of the best possible prediction from the given input (`tasks.floor`)
    nonlinearity     the error of `linear` with the exact kernel, that is, of a model that knows the linear equation
    identifiability  the error of `step`, that is, of a regression of the map from one frame to the next

A problem with a small nonlinearity is almost linear. An error near the floor cannot be improved.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

import torch

from spdebench.data import Dataset
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.metrics import evaluate
from spdebench.models import OperatorModel, build
from spdebench.models.features import Chunks, prepare_part
from spdebench.tasks import Task, TaskSpec
from spdebench.tasks.floor import DRAWS, Floor, affordable, floor
from spdebench.tasks.split import LEAST_SCORED
from spdebench.training.fitting import calibrate
from spdebench.training.scoring import predict_part

MOST_SAMPLES = 200
LEAST_SAMPLES = 20
"""The most samples of a dataset that regressions use, and the fewest that they need."""
MOST_VALUES = 1 << 26
"""The most values of u in the samples that regressions use."""


@dataclass(frozen=True)
class ProblemNumbers:
    """The three numbers of a problem, relative L2 errors on test samples; ``notes`` say why one is None.

    ``samples`` of the dataset were split into the parts that the two regressions were fitted and scored on.
    """

    floor: Floor
    task: TaskSpec
    nonlinearity: float | None = None
    identifiability: float | None = None
    samples: int = 0
    notes: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def problem_numbers(
    dataset: Dataset,
    task: TaskSpec | None = None,
    *,
    truths: int | None = None,
    draws: int = DRAWS,
    samples: int | None = None,
    device: str = "cpu",
) -> ProblemNumbers:
    """The three numbers of a dataset and a task (by default the equation's own task).

    ``truths`` samples of the dataset's seed are solved ``draws`` times for the floor; ``samples`` of its rows are used
    for the regressions. By default both are chosen so that the whole takes about a minute on one core.
    """
    if dataset.imported:
        raise UserError(f"{dataset.path.name} was imported: without its equation and seed it has no floor")
    fields = {} if task is None else dataclasses.asdict(task)
    whole = Task(dataset, **fields)
    eq, view = dataset.equation, whole.spec
    count = min(truths or affordable(eq, draws), len(dataset))
    found = floor(
        eq,
        every=view.every,
        stride=view.stride,
        seed=dataset.spec.seed,
        samples=range(count),
        draws=draws,
        device=device,
    )
    n = min(samples or MOST_SAMPLES, view.n or len(dataset), MOST_VALUES // math.prod(whole.setting.shape))
    if n < LEAST_SAMPLES:
        word = f"{n} samples are too few for a regression"
        return ProblemNumbers(found, view, samples=n, notes={"nonlinearity": word, "identifiability": word})
    part = Task(dataset, **{**dataclasses.asdict(view), "n": n})
    values: dict[str, float] = {}
    notes: dict[str, str] = {}
    for key, name, config in (("nonlinearity", "linear", {"kernel": "exact"}), ("identifiability", "step", {})):
        try:
            values[key] = regression_error(build(name, part, **config).to(device), part)
        except UserError as error:
            notes[key] = str(error)
    return ProblemNumbers(found, view, **values, samples=n, notes=notes)


def regression_error(model: OperatorModel, task: Task) -> float:
    """Relative L2 error on the test part of a model that is fitted without gradient steps."""
    if model.trainable:
        raise UserError(f"model '{model.name}' is trained; only regressions are fitted here")
    if len(task.test) < LEAST_SCORED:
        raise UserError(f"{len(task.test)} test samples are too few, at least {LEAST_SCORED} are needed")
    with torch.no_grad(), without_aliasing_warning():
        if model.streams:
            model.calibrate_stream(Chunks(model, task.train), Chunks(model, task.val))
        else:
            calibrate(model, prepare_part(model, task.train))
        prediction = predict_part(model, task.test)
    scores = evaluate(prediction, task.test.u, task.test.grid, metrics=["rel_l2"], times=task.test.times, resamples=0)
    return float(scores["rel_l2"].value)
