"""The runs that fit into a budget: a simulation of a campaign in which every run takes the estimated time."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from spdebench.campaign.exclusive_timing import reserved_seconds
from spdebench.campaign.needs import Needs, RunSettings
from spdebench.campaign.plan import Job, WaitingRun
from spdebench.campaign.sharing import slowdown
from spdebench.engines import Need
from spdebench.engines.local import Reservations
from spdebench.records import Records


@dataclass(frozen=True)
class Scheduled:
    """A run that starts ``start`` seconds after the campaign and takes about ``seconds``."""

    job: Job
    start: float
    seconds: float


def schedule(
    todo: Sequence[Job],
    needs: Needs,
    workers: int,
    budget: float,
    device: str = "cpu",
    waiting: Collection[WaitingRun] = (),
) -> list[Scheduled]:
    """The runs that end within ``budget`` seconds, in the order of their start.

    At each moment the first run in the order of ``needs`` starts that can end, as in a campaign with a budget; one
    that waits for pilots takes its place in the order when the last of them has ended. While the shares of a GPU that
    its runs use have a sum L > 1, training takes L times as long.
    """
    ready = needs.ordered(job for job in todo if job.status != "done")
    later, ended = list(waiting), {job.spec.digest for job in todo if job.status == "done"}
    known: dict[str, Need] = {}

    def need(job: Job) -> Need:
        if job.spec.digest not in known:
            known[job.spec.digest] = needs.need_of(job, device)
        return known[job.spec.digest]

    now = 0.0
    reserved = Reservations(workers, None, lambda: now)
    begun, running = list[_Running](), list[_Running]()
    while True:
        if possible := [each.job for each in later if each.pilots <= ended]:
            ready = needs.ordered([*ready, *possible])
            later = [each for each in later if not each.pilots <= ended]
        ready = [job for job in ready if now + job.seconds <= budget]  # the rest can no longer end
        can_end = [job for job in ready if now + needs.seconds(job, device) <= budget]
        for job, wanted in reserved.choose((job, need(job)) for job in can_end):
            ready.remove(job)
            reserved.start(wanted)
            running.append(_Running(job, now, job.seconds))
            begun.append(running[-1])
        if not running:
            return [Scheduled(each.job, each.start, each.end - each.start) for each in begun if each.end <= budget]
        slower = slowdown(sum(needs.share(each.job) for each in running), device)
        step = min(each.left * each.slowed(slower) for each in running)
        now += step
        for each in running:
            each.left -= step / each.slowed(slower)
        for each in [each for each in running if each.left <= 1e-9]:
            running.remove(each)
            reserved.end(need(each.job))
            each.end = now
            ended.add(each.job.spec.digest)


@dataclass
class _Running:
    """A run that started at ``start``; alone on its device it would need ``left`` seconds more."""

    job: Job
    start: float
    left: float
    end: float = math.inf

    def slowed(self, factor: float) -> float:
        """How much longer it takes if training takes this many times as long."""
        return factor if self.job.trained else 1.0


def schedule_facts(
    todo: Sequence[Job],
    records: Records,
    settings: RunSettings,
    devices: Sequence[str],
    budget: float,
    waiting: Collection[WaitingRun] = (),
) -> dict[str, Any]:
    """For ``table --plan --budget``: one row for each run that would end within the budget, and what they give."""
    needs = settings.needs(records, devices, thrifty=True)
    reserve = 0.0 if settings.exclusive else reserved_seconds(todo, records, budget)
    made = schedule(todo, needs, settings.workers or 1, budget - reserve, devices[0], waiting)
    new = [each.job for each in made if each.job.seed == 0 and not each.job.pilot and not each.job.recorded]
    first = {number for job in new for number in job.counts_for}
    return {
        "runs": [
            {
                "run": each.job.spec.name,
                "numbers": 0 if each.job.pilot else each.job.numbers,
                "starts at": each.start,
                "takes": each.seconds,
            }
            for each in made
        ],
        "published": sum(isinstance(number, int) for number in first),
        "rows": sum(not isinstance(number, int) for number in first),
        "together": settings.at_once_text,
    }
