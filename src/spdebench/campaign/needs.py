"""What a run asks of the machine that makes it: memory, a share of a GPU, time; from records where there are any."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from spdebench.campaign.plan import Job
from spdebench.campaign.rates import volume
from spdebench.engines import Need
from spdebench.paper.fill import Records

PROCESS = 700 << 20  # bytes of a process that has loaded what training needs
CUDA = 2 << 30  # what CUDA's libraries take of main memory besides, about
COPIES = 12  # of the training part's numbers that a run on the host keeps, where no record tells
MARGIN = 1.2  # over the peak of runs of the same kind
UNPUBLISHED = 0.1  # published numbers that a run is worth for which none waits


@dataclass(frozen=True)
class Means:
    """How runs are made: nothing here changes a number. ``workers``: side by side; not given, one with the engine
    ``local`` and what a cluster holds with ``ray``. ``per_gpu``: how many share a GPU; 0: as many as ``workers`` make
    it locally, one on a cluster."""

    workers: int | None = None
    engine: str = "local"
    per_gpu: int = 0
    progress: bool = False

    @property
    def alone(self) -> bool:
        """One run at a time, in this process."""
        return self.engine == "local" and (self.workers or 1) == 1

    def sharing(self, devices: int) -> int:
        return self.per_gpu or (math.ceil((self.workers or 1) / devices) if self.engine == "local" else 1)


class Needs:
    """The `Need` of a job on a device, ``per_gpu`` runs sharing a GPU at most.

    ``seeds_first``: whatever stops it, one seed of everything is done early; else all is done soonest. ``thrifty``: of
    one seed those first that give the most published numbers for their time, as it suits a budget.
    """

    def __init__(self, records: Records, per_gpu: int = 1, *, seeds_first: bool = True, thrifty: bool = False) -> None:
        self.per_gpu, self.seeds_first, self.thrifty = per_gpu, seeds_first, thrifty
        self._peaks: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        for record in records.values():
            peak = record.get("peak_memory_mb")
            if isinstance(peak, int | float) and record.get("datasets"):
                self._peaks[_key(record, str(record.get("provenance", {}).get("device", "")))].append(1e6 * peak)

    def rank(self, job: Job) -> tuple[float, ...]:
        """What is not trained first, then the first seed of everything."""
        if not self.seeds_first:
            return ()
        stage = 1 + job.seed if job.trained else 0
        return (stage, job.seconds / max(job.numbers, UNPUBLISHED)) if self.thrifty else (stage,)

    def of(self, job: Job, device: str) -> Need:
        kind = device.partition(":")[0]
        known = self._peaks.get(_key({"model": job.spec.model, "datasets": job.spec.datasets}, kind))
        peak = MARGIN * statistics.median(known) if known else None
        rank = self.rank(job)
        data = int(4e6 * volume(job.spec.datasets, job.spec.task))
        if kind == "cuda":
            share = max(1 / self.per_gpu, (peak or 0.0) / _gpu_bytes(device))
            return Need(PROCESS + CUDA + 3 * data, min(1.0, share), job.seconds, rank, device)
        return Need(int(peak or PROCESS + COPIES * data), 0.0, job.seconds, rank)


def _key(record: Mapping[str, Any], device: str) -> tuple[str, str, str]:
    return str(record["model"]), str(record["datasets"][0].get("equation")), device.partition(":")[0]


def _gpu_bytes(device: str) -> float:
    """The memory of the GPU, if this machine has it; a cluster's is not known here."""
    if not torch.cuda.is_available():
        return float("inf")
    return float(torch.cuda.get_device_properties(device).total_memory)
