"""The solver as a row of a table: its error, and its time on the device and batch that models are timed on.

Its record is like that of a run, with the model ``solver``:
  scores              the equation solved again from what a model is given, against the stored u: 0 up to rounding where
                      that is every step and point. Increments of several steps (wave, nse, sub-sampled tasks) are
                      spread evenly over them, those at fewer points (nse) interpolated.
  shifts.floor        the smallest error that what a model is given allows (`tasks.floor`), of a few test samples
  shifts.finer        the stored u against a finer solution with the same noise (edition converged; where the data are
                      that edition already, twice the sub-steps)
  shifts.independent  an independent ensemble of the same law: what a model with exactly the right law would score
  inference_ms        ms per sample for a batch of 100 from u0 and dw on the device; those of a smaller test part are
                      repeated
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from spdebench import spec
from spdebench.data import Dataset
from spdebench.data.identity import from_dict
from spdebench.equations import Equation
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.metrics import evaluate
from spdebench.metrics.evaluate import PAPER
from spdebench.records import MetricValue, PartScores, Record
from spdebench.records.record import FINER, FLOOR, INDEPENDENT
from spdebench.records.summary import MAIN
from spdebench.solvers import simulate, solve
from spdebench.solvers.conditional import Given
from spdebench.solvers.loop import between
from spdebench.tasks import Part, TaskSpec
from spdebench.tasks.floor import DRAWS, affordable, floor
from spdebench.tasks.parts import Rows
from spdebench.timing import median_time
from spdebench.training.reference_row import ReferenceSpec
from spdebench.training.scoring import BATCH, repeated_rows, rounded, sample_errors

SOLVER = "solver"
VERSION, SUBSAMPLED_VERSION = 1, 2
"""Version of the measurement. In version 1 the solver got all stored increments even if the task sums them or drops
points, so that its records of such tasks are no longer used."""
METRICS = (*PAPER, "w12", "std_ratio")


@dataclass(frozen=True)
class SolverSpec(ReferenceSpec):
    """Everything that a solver's record depends on."""

    model = SOLVER

    @property
    def identity(self) -> dict[str, Any]:
        plain = (self.given.every, self.given.stride) == (1, 1)
        version = VERSION if plain else SUBSAMPLED_VERSION
        return {SOLVER: version, "dataset": self.dataset.to_dict(), "task": self.task}

    @cached_property
    def given(self) -> Given:
        """The part of the noise that a model is given."""
        return Given(self.dataset.equation, self.task.get("every", 1), self.task.get("stride", 1))


def measure(wanted: SolverSpec, dataset: Dataset, device: str = "cpu", metrics: Iterable[str] = ()) -> Record:
    """The record of the solver on the test part of a dataset, scored by the usual and by further ``metrics``."""
    start = time.perf_counter()
    task = spec.build(TaskSpec, wanted.task, "task")
    rows = task.rows(len(dataset))["test"]
    given = wanted.given
    scored = Part("test", [dataset], [rows], every=task.every, stride=task.stride)
    truth = scored.u
    names = tuple(dict.fromkeys((*METRICS, *metrics)))

    def score(u: Tensor, against: Tensor) -> PartScores:
        found = evaluate(u, against, scored.grid, metrics=names, times=scored.times, resamples=0)
        values = {name: MetricValue(float(s.value)) for name, s in found.items()}
        return PartScores(values, sample_errors(found))

    def thin(u: Tensor) -> Tensor:
        return given.frames(u).float()

    eq = dataset.equation
    again, ms = _solved(given, scored, device)
    own = score(thin(again), truth)
    with without_aliasing_warning():
        seed = dataset.spec.seed
        finer = thin(_simulated(_finer(eq), seed, rows.tolist(), dataset.spec.chunk, device))
        fresh = range(len(dataset), len(dataset) + len(rows))
        independent = thin(_simulated(eq, seed, fresh, dataset.spec.chunk, device))
    shifts = {
        FINER: score(truth, finer),
        INDEPENDENT: score(independent, truth),
        FLOOR: measured_floor(wanted, device),
    }
    return wanted.record(own, shifts, time.perf_counter() - start, device, ms, BATCH)


def _finer(eq: Equation) -> Equation:
    """The equation solved more accurately with the same noise."""
    if eq.edition == "paper":
        return eq.replace(edition="converged")
    return eq.replace(substeps=2 * eq.substeps)


def measured_floor(wanted: SolverSpec, device: str = "cpu") -> PartScores:
    """The floor on the first few test samples, which are solved again from their seed; no file is needed."""
    task, given = spec.build(TaskSpec, wanted.task, "task"), wanted.given
    rows = task.rows(wanted.dataset.n)["test"][: affordable(given.equation, DRAWS)].tolist()
    seed = wanted.dataset.seed
    found = floor(given.equation, every=task.every, stride=task.stride, seed=seed, samples=rows, device=device)
    return PartScores({MAIN: MetricValue(found.value, *found.interval)}, n=found.truths)


def with_floor(record: Record, device: str = "cpu") -> Record:
    """A solver's record from before floors were measured, with the floor added."""
    return dataclasses.replace(record, shifts={**record.shifts, FLOOR: measured_floor(_spec_of(record), device)})


def floor_of(record: Record) -> float | None:
    """The floor in a solver's record; if the given noise determines the solution, the solver's own error."""
    found = record.value(MAIN, FLOOR)
    if found is None and _spec_of(record).given.complete:
        return record.value(MAIN)
    return found


def lacks_floor(record: Record) -> bool:
    """Whether a solver's record is from before floors were measured, and its problem has one above rounding."""
    return record.model == SOLVER and floor_of(record) is None


def outdated(record: Record) -> bool:
    """Whether a solver's record of a sub-sampled task is of version 1, where the solver got more than models do."""
    if record.model != SOLVER:
        return False
    try:
        return _spec_of(record).digest != record.digest
    except UserError:  # of an equation that is not declared here
        return False


def _spec_of(record: Record) -> SolverSpec:
    return SolverSpec(from_dict(dict(record.datasets[0])), dict(record.task))


def _solved(given: Given, part: Part, device: str) -> tuple[Tensor, float]:
    """u for the whole part at all stored frames and points, solved in batches, and the time per sample."""

    def batch(rows: Rows) -> tuple[Tensor, Tensor]:
        u0, dw = (x[rows].to(device) for x in (part.u0, part.dw))
        return between(part.grid, given.equation.grid, u0), given.spread(dw[:, 1:])

    with without_aliasing_warning():
        parts = [slice(first, first + BATCH) for first in range(0, len(part), BATCH)]
        out = torch.cat([solve(given.equation, *batch(rows)).float().cpu() for rows in parts])
        return out, solver_time(given.equation, *batch(repeated_rows(len(part))))


def solver_time(eq: Equation, u0: Tensor, dw: Tensor) -> float:
    """Milliseconds per sample for solving this batch: the median of a few repeats after a warm-up."""
    return rounded(1e3 * median_time(lambda: solve(eq, u0, dw), 10, dw.device) / len(dw))


def _simulated(eq: Equation, seed: int, rows: Sequence[int], chunk: int, device: str) -> Tensor:
    """u of the samples with these numbers, solved ``chunk`` at a time."""
    pieces = [rows[k : k + chunk] for k in range(0, len(rows), chunk)]
    return torch.cat([simulate(eq, seed, piece, device=device).u.cpu() for piece in pieces])
