"""The true law as rows of a table: the scores of a model that knows the law, and those of its mean as a point forecast.

The record is like that of a run, with the model ``independent``:
  scores                    64 further members of the true conditional law of each test input, scored against the stored
                            members: the floor of every score of laws
  shifts.conditional-mean   their mean as a point forecast, the floor of models that give one answer
  shifts.exact-law          draws of the exact Gaussian law, where the equation is linear with additive noise (heat)
The further members have the numbers after the stored ones. They are solved when they are scored, and never stored.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spdebench import spec
from spdebench.data import Dataset
from spdebench.errors import UserError
from spdebench.metrics import law_scores
from spdebench.metrics.law.members import MembersInBlocks
from spdebench.records import PartScores, Record
from spdebench.tasks import Part, TaskSpec
from spdebench.tasks.law_floor import GaussianLaw, further_members, is_gaussian
from spdebench.training.members import SEEN_NOISE, TEST_MEMBERS, true_members
from spdebench.training.reference_row import ReferenceSpec
from spdebench.training.scoring import metric_values, sample_errors

INDEPENDENT_LAW = "independent"
CONDITIONAL_MEAN = "conditional-mean"
EXACT_LAW = "exact-law"
VERSION = 1
"""Version of the measurement."""


@dataclass(frozen=True)
class LawRowSpec(ReferenceSpec):
    """Everything that the record of the true law depends on; ``members`` is the number of stored members."""

    model = INDEPENDENT_LAW
    members: int

    @property
    def identity(self) -> dict[str, Any]:
        values = {"dataset": self.dataset.to_dict(), "members": self.members, "task": self.task}
        return {INDEPENDENT_LAW: VERSION, **values}


class FurtherMembers(MembersInBlocks):
    """Members first, .., first + m - 1 of the true law of each sample of a part; their mean is kept."""

    def __init__(self, part: Part, first: int, device: str = "cpu") -> None:
        self.part, self.first, self.device = part, first, device
        self.shape = (len(part), TEST_MEMBERS, *part.shape)
        self.mean = torch.zeros((len(part), *part.shape))

    def read(self, inputs: slice) -> Tensor:
        members = range(self.first, self.first + self.shape[1])
        out = further_members(self.part, members, inputs, self.device)
        self.mean[inputs] = out.mean(1).cpu()
        return out


class ExactMembers(MembersInBlocks):
    """Draws of the exact Gaussian law of a linear equation for each sample of a part."""

    def __init__(self, part: Part) -> None:
        data = part.datasets[0].spec
        self.part, self.seed, self.law = part, data.seed, GaussianLaw(data.equation, data.seen or 0)
        self.shape = (len(part), TEST_MEMBERS, *part.shape)

    def read(self, inputs: slice) -> Tensor:
        return self.part.thinned(self.law.draw(self.seed, self.part.rows[0][inputs].tolist(), self.shape[1]))


def measure(row: LawRowSpec, dataset: Dataset, device: str = "cpu") -> Record:
    """The record of the true law on the test part of a dataset with members."""
    start = time.perf_counter()
    task = spec.build(TaskSpec, row.task, "task")
    rows = task.rows(len(dataset))["test"]
    part = Part("test", [dataset], [rows], every=task.every, stride=task.stride, noise=SEEN_NOISE)
    truth = true_members(part)
    if truth is None or truth.shape[1] < row.members:
        raise UserError(f"{dataset.path.name} needs {row.members} members; generate it with --members")
    further = FurtherMembers(part, truth.shape[1], device=device)

    def score(prediction: MembersInBlocks | Tensor) -> PartScores:
        found = law_scores(prediction, truth, part.grid, times=part.times, device=device)
        return PartScores(metric_values(found), sample_errors(found), row.datasets, part.name, len(part))

    own = score(further)  # this computes its mean, which is used next
    shifts = {CONDITIONAL_MEAN: score(further.mean.unsqueeze(1))}
    if is_gaussian(dataset.equation):
        shifts[EXACT_LAW] = score(ExactMembers(part))
    return row.record(own, shifts, time.perf_counter() - start, device)
