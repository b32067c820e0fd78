"""The runs that fit into a budget: a simulation of a campaign in which every run takes the estimated time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from spdebench.campaign.exclusive_timing import reserved_seconds
from spdebench.campaign.needs import Needs, RunSettings
from spdebench.campaign.plan import Job, Waiting
from spdebench.engines import Need
from spdebench.engines.local import Room
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


def schedule(
    todo: Sequence[Job],
    needs: Needs,
    workers: int,
    budget: float,
    device: str = "cpu",
    waiting: Collection[Waiting] = (),
) -> list[Scheduled]:
    """The runs that end within ``budget`` seconds, in the order of their start.

    At each moment the first run in the order of ``needs`` starts that can end, as in a campaign with a budget; one
    that waits for pilots takes its place in the order when the last of them has ended.
    """
    ready = needs.ordered(job for job in todo if job.status != "done")
    later, ended = list(waiting), {job.spec.digest for job in todo if job.status == "done"}
    known: dict[str, Need] = {}

    def need(job: Job) -> Need:
        if job.spec.digest not in known:
            known[job.spec.digest] = needs.of(job, device)
        return known[job.spec.digest]

    now, room, running, out = 0.0, Room(workers, None), list[Scheduled](), list[Scheduled]()
    while True:
        if possible := [each.job for each in later if each.pilots <= ended]:
            ready = needs.ordered([*ready, *possible])
            later = [each for each in later if not each.pilots <= ended]
        ready = [job for job in ready if now + job.seconds <= budget]  # the rest can no longer end
        can_end = [job for job in ready if now + needs.seconds(job, device) <= budget]
        for job, wanted in room.choose((job, need(job)) for job in can_end):
            ready.remove(job)
            room.taken.append(wanted)
            out.append(Scheduled(job, now, needs.seconds(job, device)))
            running.append(out[-1])
        if not running:
            return out
        now = min(each.end for each in running)
        for each in [each for each in running if each.end <= now]:
            running.remove(each)
            room.taken.remove(need(each.job))
            ended.add(each.job.spec.digest)


def schedule_facts(
    todo: Sequence[Job],
    records: Records,
    settings: RunSettings,
    devices: Sequence[str],
    budget: float,
    waiting: Collection[Waiting] = (),
) -> dict[str, Any]:
    """For ``table --plan --budget``: one row for each run that would end within the budget, and what they give."""
    needs = settings.needs(records, devices, thrifty=True)
    reserve = 0.0 if settings.exclusive else reserved_seconds(todo, records, budget)
    made = schedule(todo, needs, settings.workers or 1, budget - reserve, devices[0], waiting)
    first = {number for each in made if each.job.seed == 0 and not each.job.pilot for number in each.job.gives}
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
