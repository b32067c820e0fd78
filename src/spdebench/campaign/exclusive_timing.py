"""Inference times measured again, one run at a time, when a campaign has ended and nothing else runs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from spdebench import engines
from spdebench.campaign.deadline import Deadline, OutOfTime, until
from spdebench.campaign.plan import Job
from spdebench.data.identity import from_dict
from spdebench.errors import one_line, without_aliasing_warning
from spdebench.records import Record, Records, store
from spdebench.records.times import depends_on_fit, without_exclusive_time
from spdebench.solvers import simulate
from spdebench.tasks import Batch, Part
from spdebench.training import RunSpec
from spdebench.training.law_rows import INDEPENDENT_LAW
from spdebench.training.provenance import device_name, device_type
from spdebench.training.scoring import BATCH, inference_time, repeated_rows, rounded
from spdebench.training.solver_row import SOLVER, solver_time


def reserved_seconds(todo: Sequence[Job], known: Records, budget: float | None) -> float:
    """The part of the budget kept for exclusive timing: two seconds for each model and equation without such a time.

    It is at most a twentieth of the budget; what is not timed then is timed by a later command.
    """
    if budget is None:
        return 0.0
    have = {(record.model, record.equation) for record in known.values() if record.exclusive_timing}
    kinds = {(j.spec.model, str(j.spec.datasets[0]["equation"])) for j in todo if j.status != "done"}
    return min(0.05 * budget, 2.0 * len(kinds - have))


def others_running(runs: str | Path, name: str = "") -> bool:
    """Whether runs other than ``name`` are being made in this folder now, by whatever command."""
    try:
        others = [folder for folder in Path(runs).iterdir() if folder.name != name]
    except OSError:
        return False
    return any(engines.held(folder) for folder in others)


@dataclass(frozen=True)
class _Timing:
    """A run whose inference time is to be measured while nothing else runs."""

    record: Record
    devices: tuple[str, ...]
    deadline: Deadline


def time_exclusively(
    todo: Sequence[Job], runs: str, results: str, devices: tuple[str, ...], engine: str, deadline: Deadline
) -> None:
    """Measure the inference time of one run of each kind that has no exclusive time yet, and record it.

    While another command still makes runs nothing is timed: the last one to end does it.
    """
    if others_running(runs):
        return
    known = store.read(results)
    found = (known[j.spec.digest] for j in todo if j.spec.digest in known)
    mine = (record for record in found if record.scores)  # a pilot that diverged has none
    units = [_Timing(record, devices, deadline) for record in without_exclusive_time(mine, known)]
    need = engines.Need(gpus=1.0 if device_type(devices[0]) == "cuda" else 0.0)
    with closing(engines.run(_timed_on_any, units, 1, engine=engine, needs=need)) as results_of_units:
        for record in results_of_units:
            if record:
                store.add(results, record)


def _timed_on_any(unit: _Timing) -> Record | None:
    """The record with a new time from the first device that is like the run's; None if there is none, or no time.

    All runs are made and recorded by now: an error here is a warning, so that the campaign can end.
    """
    for device in unit.devices:
        try:
            with until(unit.deadline):
                if unit.deadline.left > 0 and (record := timed(unit.record, device)):
                    return record
        except OutOfTime:
            return None
        except Exception as error:
            reason = f"{type(error).__name__}: {one_line(str(error))}"
            warnings.warn(f"the inference time of {unit.record.name} was not measured ({reason})", stacklevel=2)
    return None


def timed(record: Record, device: str) -> Record | None:
    """The record with its inference time measured again; None on another device than the run's.

    None also for a run that cannot be timed without its weights, and for the true law, which predicts nothing.
    """
    if record.provenance.device != device_name(device) or record.model == INDEPENDENT_LAW or depends_on_fit(record):
        return None
    ms, batch = (_solver_time if record.model == SOLVER else _network_time)(record, device)
    return replace(record, exclusive_timing=True, inference_ms=rounded(ms), inference_batch=batch)


def _network_time(record: Record, device: str) -> tuple[float, int]:
    """`inference_time` of a network with random weights and inputs: their values do not change its time."""
    spec = RunSpec(
        model=record.model,
        config=dict(record.config),
        datasets=tuple(dict(d) for d in record.datasets),
        task=dict(record.task),
        options=dict(record.options),
    )
    return inference_time(spec.build().to(device), cast(Part, _Sample(spec)))


class _Sample:
    """A part of random noise, as far as timing uses one."""

    def __init__(self, spec: RunSpec) -> None:
        self.setting = spec.setting
        self.shape = self.setting.shape

    def __len__(self) -> int:
        return BATCH

    def batch(self, rows: Tensor) -> Batch:
        count = len(rows)
        dw = torch.randn((count, *self.shape), generator=torch.Generator().manual_seed(0)) * self.setting.dt**0.5
        dw[:, 0] = 0
        known = (self.setting.equation,) if self.setting.equation else ()
        return Batch(torch.zeros_like(dw[:, 0]), dw, known, torch.zeros(count, dtype=torch.long))


def _solver_time(record: Record, device: str) -> tuple[float, int]:
    """Milliseconds per sample of the solver, and the batch size."""
    spec = from_dict(dict(record.datasets[0]))
    with without_aliasing_warning():
        paths = simulate(spec.equation, spec.seed, repeated_rows(spec.n).tolist(), device=device)
        return solver_time(spec.equation, paths.u0, paths.dw), BATCH
