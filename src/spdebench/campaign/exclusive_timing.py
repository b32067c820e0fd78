"""Inference times taken once more when a campaign has ended and nothing runs beside them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spdebench import engines
from spdebench.campaign.deadline import Deadline
from spdebench.campaign.plan import Job
from spdebench.records import store as records
from spdebench.records import times


def reserve(todo: Sequence[Job], budget: float | None) -> float:
    """Seconds of the budget that are kept for taking times alone: about two for each model and equation."""
    if budget is None:
        return 0.0
    return min(0.1 * budget, 2.0 * len({(j.spec.model, str(j.spec.datasets[0]["equation"])) for j in todo}))


def company(runs: str | Path, name: str = "") -> bool:
    """Whether runs other than ``name`` are being made in this folder now, by whatever command."""
    try:
        others = [folder for folder in Path(runs).iterdir() if folder.name != name]
    except OSError:
        return False
    return any(engines.held(folder) for folder in others)


@dataclass(frozen=True)
class _Timing:
    """A run whose inference time is to be taken with nothing beside it."""

    record: dict[str, Any]
    devices: tuple[str, ...]
    deadline: Deadline


def retime(
    todo: Sequence[Job], runs: str, results: str, devices: tuple[str, ...], engine: str, deadline: Deadline
) -> None:
    """Now that nothing runs beside it, take the time of one run of each kind again that was not timed alone.

    Where another command still makes runs nothing is timed: the last one to end does it.
    """
    if company(runs):
        return
    known = records.read(results)
    mine = (known[j.spec.digest] for j in todo if j.spec.digest in known)
    units = [_Timing(record, devices, deadline) for record in times.untimed(mine, known)]
    need = engines.Need(gpus=1.0 if devices[0].startswith("cuda") else 0.0)
    with closing(engines.run(_time_alone, units, 1, engine=engine, needs=need)) as taken:
        for short in taken:
            if short:
                records.add(results, short)


def _time_alone(unit: _Timing) -> dict[str, Any] | None:
    for device in unit.devices:
        if unit.deadline.left > 0 and (short := times.retime(unit.record, device)):
            return short
    return None
