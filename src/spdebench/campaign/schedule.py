"""The runs that fit into a budget, in the order in which they start, on workers that share the devices."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spdebench.campaign.needs import Needs, RunSettings
from spdebench.campaign.plan import Job
from spdebench.records import Records


@dataclass(frozen=True)
class Scheduled:
    """A run that starts ``start`` seconds after the campaign and takes about ``seconds``."""

    job: Job
    start: float
    seconds: float

    @property
    def end(self) -> float:
        return self.start + self.seconds


def schedule(todo: Sequence[Job], needs: Needs, workers: int, budget: float, device: str = "cpu") -> list[Scheduled]:
    """The runs that start within ``budget`` seconds if every run takes as long as estimated."""
    free = [0.0] * workers
    out = []
    for job in needs.ordered(j for j in todo if j.status != "done"):
        start = heapq.heappop(free)
        if start >= budget:
            break
        out.append(Scheduled(job, start, needs.seconds(job, device)))
        heapq.heappush(free, out[-1].end)
    return out


def schedule_facts(
    todo: Sequence[Job], records: Records, settings: RunSettings, devices: Sequence[str], budget: float
) -> list[dict[str, Any]]:
    """One row for each run that would start, for ``table --plan --budget``."""
    needs = Needs(records, settings.runs_per_gpu(len(devices)), thrifty=True)
    return [
        {
            "run": each.job.spec.name,
            "numbers": each.job.numbers,
            "starts at": each.start,
            "takes": each.seconds,
            "ends": each.end <= budget,
        }
        for each in schedule(todo, needs, settings.workers or 1, budget, devices[0])
    ]
