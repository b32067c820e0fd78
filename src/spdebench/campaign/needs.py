"""What a run needs of the machine that makes it: memory, a share of a GPU, time; estimated from records."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch

from spdebench.campaign.plan import Job
from spdebench.campaign.rates import volume
from spdebench.campaign.sharing import slowdown
from spdebench.engines import Need
from spdebench.records import Records

PROCESS = 700 << 20  # bytes of a process that has loaded what training needs
CUDA = 2 << 30  # what CUDA's libraries take of main memory besides, about
COPIES = 12  # copies of the training part that a run on the host is assumed to need, where no record says it
MARGIN = 1.2  # over the peak memory of runs of the same kind
PER_GPU = 12  # runs that share a GPU if nothing else is said; more gain little (`sharing.slowdown`)


@dataclass(frozen=True)
class RunSettings:
    """How runs are made; nothing here changes a number.

    ``workers``: how many runs are made at the same time; if not given, one with the engine ``local`` (`for_devices`
    fills GPUs) and as many as the cluster holds with ``ray``. ``per_gpu``: how many share a GPU; 0: as follows from
    ``workers`` locally, one on a cluster.
    """

    workers: int | None = None
    engine: str = "local"
    per_gpu: int = 0
    progress: bool = False
    force: bool = False  # continue what another version or device has begun

    def for_devices(self, devices: Sequence[str], cores: int | None = None) -> RunSettings:
        """With as many runs at a time as fill local GPUs: ``per_gpu`` on each, or 12, but no more than ``cores``."""
        if self.workers is not None or self.engine != "local" or not devices[0].startswith("cuda"):
            return self
        most = PER_GPU if cores is None else min(PER_GPU, max(1, cores // len(devices)))
        return replace(self, workers=len(devices) * (self.per_gpu or most))

    @property
    def exclusive(self) -> bool:
        """One run at a time, in this process."""
        return self.engine == "local" and (self.workers or 1) == 1

    def runs_per_gpu(self, devices: int) -> int:
        return self.per_gpu or (math.ceil((self.workers or 1) / devices) if self.engine == "local" else 1)


class Needs:
    """The `Need` of a job on a device, ``per_gpu`` runs sharing a GPU at most.

    ``seeds_first``: the first seed of every cell comes before any second one; otherwise the longest runs start first.
    ``thrifty``: within a seed, runs with the most numbers (published, or rows of a leaderboard) per second come first,
    as a budget wants it; pilots count with the run that waits for them.
    """

    def __init__(self, records: Records, per_gpu: int = 1, *, seeds_first: bool = True, thrifty: bool = False) -> None:
        self.per_gpu, self.seeds_first, self.thrifty = per_gpu, seeds_first, thrifty
        self._peaks: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        for record in records.values():
            if record.peak_memory_mb is not None and math.isfinite(record.peak_memory_mb):
                key = _key(record.model, record.equation, record.provenance.device or "")
                self._peaks[key].append(1e6 * record.peak_memory_mb)

    def rank(self, job: Job) -> tuple[float, ...]:
        """The first seed of every cell first: by cost of a number, or in turns and in these models without training."""
        if not self.seeds_first:
            return ()
        return (job.seed, job.cost) if self.thrifty else (job.group, job.seed, job.turn, int(job.trained))

    def ordered(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs in the order in which they start; of equal ranks the longest first."""
        return sorted(jobs, key=lambda job: (self.rank(job), -job.seconds))

    def seconds(self, job: Job, device: str) -> float:
        """About how long the run takes while others share its GPU, which slows down training."""
        return job.seconds * (slowdown(self.per_gpu, device) if job.trained else 1.0)

    def of(self, job: Job, device: str) -> Need:
        kind = device.partition(":")[0]
        known = self._peaks.get(_key(job.spec.model, str(job.spec.datasets[0].get("equation")), kind))
        peak = MARGIN * statistics.median(known) if known else None
        rank = self.rank(job)
        data = int(4e6 * volume(job.spec.datasets, job.spec.task))
        if kind == "cuda":
            share = max(1 / self.per_gpu, (peak or 0.0) / _gpu_bytes(device))
            return Need(PROCESS + CUDA + 3 * data, min(1.0, share), job.seconds, rank, device)
        return Need(int(peak or PROCESS + COPIES * data), 0.0, job.seconds, rank)


def _key(model: str, equation: str, device: str) -> tuple[str, str, str]:
    return model, equation, device.partition(":")[0]


def _gpu_bytes(device: str) -> float:
    """The memory of the GPU, if this machine has it; a cluster's is not known here."""
    if not torch.cuda.is_available():
        return float("inf")
    return float(torch.cuda.get_device_properties(device).total_memory)
