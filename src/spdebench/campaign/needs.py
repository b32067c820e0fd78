"""What a run needs of the machine that makes it: memory, a share of a GPU, time; estimated from records."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch

from spdebench.campaign.effort import million_numbers
from spdebench.campaign.plan import Job
from spdebench.campaign.sharing import FULL_LOAD, SMALL_KERNELS, gpu_share, kernel_kind, slowdown
from spdebench.engines import Need
from spdebench.records import Records
from spdebench.training.provenance import device_type

PROCESS_BYTES = 700 << 20  # main memory of a process that has loaded what training needs
CUDA_BYTES = 2 << 30  # main memory that CUDA's libraries need in addition, about
TRAINING_COPIES = 12  # copies of the training part that a run on a CPU is assumed to need, if no record says it
PEAK_MARGIN = 1.2  # a run may need this times the median peak memory of recorded runs of the same kind
PER_GPU = 12  # most runs that share a GPU, if the user does not say it; runs that use much of it are fewer


@dataclass(frozen=True)
class RunSettings:
    """How runs are made; nothing here changes a number.

    ``workers``: how many runs are made at the same time; if not given, one with the engine ``local`` (`for_devices`
    fills GPUs) and as many as the cluster holds with ``ray``. ``per_gpu``: how many runs share a GPU; 0 means
    ``workers`` divided by the number of GPUs on this machine, and one on a cluster.
    """

    workers: int | None = None
    engine: str = "local"
    per_gpu: int = 0
    progress: bool = False
    force: bool = False  # continue what another version or device has begun
    by_load: bool = False  # runs start on a GPU until it is fully used, in place of a fixed number

    def for_devices(self, devices: Sequence[str], cores: int | None = None) -> RunSettings:
        """These settings with as many simultaneous runs as fill the local GPUs, if their number was not given.

        These are ``per_gpu`` runs on each GPU. If that is 0, runs start on a GPU until it is fully used; there are at
        most `PER_GPU` on each, and no more than ``cores`` in all.
        """
        if self.workers is not None or self.engine != "local" or device_type(devices[0]) != "cuda":
            return self
        most = PER_GPU if cores is None else min(PER_GPU, max(1, cores // len(devices)))
        return replace(self, workers=len(devices) * (self.per_gpu or most), by_load=not self.per_gpu)

    @property
    def at_once_text(self) -> str:
        """For messages: how many runs are made at the same time; empty if it is one."""
        if self.by_load:
            return "as many at a time as use the GPU fully"
        return f"{self.workers} side by side" if (self.workers or 1) > 1 else ""

    @property
    def exclusive(self) -> bool:
        """Whether one run at a time is made, in this process."""
        return self.engine == "local" and (self.workers or 1) == 1

    def needs(
        self, records: Records, devices: Sequence[str], *, seeds_first: bool = True, thrifty: bool = False
    ) -> Needs:
        """The `Needs` of runs that are made with these settings."""
        per_gpu = self.runs_per_gpu(len(devices))
        return Needs(records, per_gpu, seeds_first=seeds_first, thrifty=thrifty, by_load=self.by_load)

    def runs_per_gpu(self, devices: int) -> int:
        """How many runs may share one of this number of GPUs."""
        return self.per_gpu or (math.ceil((self.workers or 1) / devices) if self.engine == "local" else 1)


class Needs:
    """The `Need` of a job on a device, ``per_gpu`` runs sharing a GPU at most.

    ``seeds_first``: the first seed of every cell comes before any second one; otherwise the longest runs start first.
    ``thrifty``: within a seed, runs with the most numbers (published, or rows of a leaderboard) per second come first,
    as a budget wants it; pilots count with the run that waits for them.
    ``by_load``: a run takes the share of a GPU that it uses, of `FULL_LOAD` in all. A second in which it uses half of
    the GPU then costs half a second, and runs of one kind follow each other if their costs are within a factor of two.
    """

    def __init__(
        self,
        records: Records,
        per_gpu: int = 1,
        *,
        seeds_first: bool = True,
        thrifty: bool = False,
        by_load: bool = False,
    ) -> None:
        self.per_gpu, self.seeds_first, self.thrifty, self.by_load = per_gpu, seeds_first, thrifty, by_load
        self._shares: dict[str, float] = {}
        self._peaks: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        for record in records.values():
            if record.peak_memory_mb is not None and math.isfinite(record.peak_memory_mb):
                key = _key(record.model, record.equation, record.provenance.device or "")
                self._peaks[key].append(1e6 * record.peak_memory_mb)

    def rank(self, job: Job) -> tuple[float, ...]:
        """Lower ranks start first: by seed, and then by cost of a number or by `Job.order`; () if any order will do."""
        if not self.seeds_first:
            return ()
        if not self.thrifty:
            return (job.group, job.seed, job.order, int(job.trained))
        if not self.by_load:
            return (job.seed, job.cost)
        share = self.share(job)
        cost = job.cost * (share or 1.0)
        return (job.seed, math.floor(math.log2(max(cost, 1e-9))), float(share >= SMALL_KERNELS), cost)

    def ordered(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs in the order in which they start; of equal ranks the longest first."""
        return sorted(jobs, key=lambda job: (self.rank(job), -job.seconds))

    def seconds(self, job: Job, device: str) -> float:
        """About how long the run takes while others like it share its GPU, which slows down training."""
        if not job.trained:
            return job.seconds
        share = self.share(job)
        return job.seconds * slowdown(share * min(self.per_gpu, self._runs_at_once(share)), device)

    def total_seconds(self, jobs: Iterable[Job], devices: Sequence[str], workers: int) -> float:
        """About how many seconds runs take in all: each keeps a worker busy, or its part of a GPU."""
        if device_type(devices[0]) != "cuda":
            return sum(job.seconds for job in jobs) / workers
        device = devices[0]
        return sum(self.seconds(job, device) * self.need_of(job, device).gpus for job in jobs) / len(devices)

    def share(self, job: Job) -> float:
        """`gpu_share` of a run, computed once."""
        if job.spec.digest not in self._shares:
            self._shares[job.spec.digest] = gpu_share(job.spec)
        return self._shares[job.spec.digest]

    def _runs_at_once(self, share: float) -> float:
        """How many runs that each use this share fill a GPU, at least one; infinite unless runs start by load."""
        return max(1, math.floor(FULL_LOAD / share)) if self.by_load and share else math.inf

    def need_of(self, job: Job, device: str) -> Need:
        """Main memory, share of the GPU, seconds and rank of a run on this device."""
        kind = device_type(device)
        known = self._peaks.get(_key(job.spec.model, str(job.spec.datasets[0].get("equation")), kind))
        peak = PEAK_MARGIN * statistics.median(known) if known else None
        rank = self.rank(job)
        data = int(4e6 * million_numbers(job.spec.datasets, job.spec.task))
        if kind == "cuda":
            of_load = 1 / self._runs_at_once(self.share(job))
            share = max(1 / self.per_gpu, of_load, (peak or 0.0) / _gpu_bytes(device))
            alike = kernel_kind(self.share(job)) if self.by_load else ""
            return Need(PROCESS_BYTES + CUDA_BYTES + 3 * data, min(1.0, share), job.seconds, rank, device, alike)
        return Need(int(peak or PROCESS_BYTES + TRAINING_COPIES * data), 0.0, job.seconds, rank)


def _key(model: str, equation: str, device: str) -> tuple[str, str, str]:
    """Runs with the same key are assumed to need the same memory."""
    return model, equation, device_type(device)


def _gpu_bytes(device: str) -> float:
    """The memory of the GPU, if this machine has it; a cluster's is not known here."""
    if not torch.cuda.is_available():
        return float("inf")
    return float(torch.cuda.get_device_properties(device).total_memory)
