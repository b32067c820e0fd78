"""The data for pictures of the law that a run predicts: its kept members, the true members, and its rank histogram."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spdebench.data import Dataset, open_dataset
from spdebench.data.identity import from_dict
from spdebench.errors import UserError
from spdebench.report.figures.law import Laws, Ranks
from spdebench.tasks import TaskSpec
from spdebench.training import Run

KEPT = "members.npy"
"""The file of a run's folder with members of its predicted law for the first test inputs."""

RANKS = "rank_chi2"


def run_title(run: Run) -> str:
    """Model, equation and the truncation of the seen noise."""
    seen = run.spec.task_spec.seen
    return f"{run.spec.model}, {run.spec.equation}" + ("" if seen is None else f", seen={seen}")


def laws_of(run: Run, file: Path | None = None) -> Laws:
    """True and predicted members of the run's first test inputs.

    ``file`` is the run's dataset, with the file of members next to it; by default both are in the folder ``data``.
    """
    predicted = run.members
    if predicted is None:
        raise UserError(f"{run.name} has kept no members; train it with seen=K on data with --members, and test it")
    name = from_dict(run.spec.datasets[0]).file_name
    path = file or Path("data") / name
    if not path.is_file():
        raise UserError(f"the true members of {run.name} are those of its dataset; give it with --truth {name}")
    dataset = open_dataset(path)
    if dataset.identity != run.spec.datasets[0]:
        raise UserError(f"{path} is not the dataset of {run.name}; give that one with --truth {name}")
    truth = true_members(dataset, run.spec.task_spec, len(predicted))
    if predicted.ndim < 3 or not predicted.size or truth.shape[2:] != predicted.shape[2:]:
        raise UserError(f"{run.file(KEPT)} does not fit the true members {truth.shape}; train the run again")
    setting = run.task_setting
    remark = f"{truth.shape[1]} true and {predicted.shape[1]} predicted members of each input of the test part"
    return Laws(truth, np.asarray(predicted), setting.times, setting.grid, run_title(run), remark)


def true_members(dataset: Dataset, task: TaskSpec, inputs: int) -> np.ndarray:
    """u of the true members of the first test inputs at the frames and points of the task: (inputs, M, T, X..)."""
    points = (slice(None, None, task.stride),) * dataset.grid.dim
    return dataset.members(0, inputs)[(slice(None), slice(None), slice(None, None, task.every), *points)]


def ranks_of(run: Run) -> Ranks:
    """The rank histogram of a run that was scored against true members."""
    scores = run.scores
    if RANKS not in scores:
        raise UserError(f"{run.name} has no rank histogram: it was not scored as a law; train it with seen=K")
    found = scores[RANKS].details
    return Ranks(tuple(found["histogram"]), float(found["p_value"]), f"{run_title(run)}: ranks")
