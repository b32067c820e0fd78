"""Fill the missing cells of tables: make the data, train, score on other data where wanted, and record each run as
soon as it is finished. Whatever stops a campaign, the same command continues it.

Models without training come first, then the first seed of every cell: the longest runs first, or with a budget those
with the most published numbers per second. With ``portable`` an unfinished run of a small model is carried to another
machine, and a larger one only starts if it can end. On a cluster without a budget the longest runs simply start first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from spdebench import engines
from spdebench.campaign.deadline import FOREVER, Deadline
from spdebench.campaign.exclusive_timing import reserved_seconds, time_exclusively
from spdebench.campaign.needs import Needs, RunSettings
from spdebench.campaign.one_run import Places, RunOutcome, Unit, collect, has_record, work, worker_lost
from spdebench.campaign.plan import Job
from spdebench.campaign.portable import export
from spdebench.campaign.request import Campaign
from spdebench.data.generate import check_folder, check_where
from spdebench.errors import UserError
from spdebench.records import store

Report = Callable[[RunOutcome], None]


def fill_missing(
    todo: Sequence[Job],
    places: Places,
    settings: RunSettings = RunSettings(),
    *,
    budget: float | None = None,
    report: Report | None = None,
    campaign: Campaign | None = None,
    portable: str | Path | None = None,
) -> list[RunOutcome]:
    """Make every run that is not done, as far as the ``budget`` (seconds) goes.

    After each run and at the end ``portable``, a folder, gets all that another machine needs to continue.
    """
    for device in places.devices:
        check_where(device, settings.engine)
    store.check_writable(places.results)
    check_folder(Path(places.runs))
    deadline = Deadline.after(FOREVER if budget is None else budget)
    outcomes: list[RunOutcome] = []
    known = store.read(places.results)

    def say(outcome: RunOutcome) -> None:
        outcomes.append(outcome)
        if outcome.record is not None:
            known[outcome.record.digest] = outcome.record
        if portable is not None and outcome.state != "left":
            export(portable, known, places.runs)
        if report:
            report(outcome)

    ready = [
        j for j in todo if j.status == "finished" and not j.shifts and not j.figure_data and has_record(places, j.spec)
    ]
    rest = [j for j in todo if j.status != "done" and j not in ready]
    if rest and budget is not None:
        _check_budget(rest, budget)
    if campaign is not None:
        campaign.write(places.runs)
    for job in ready:
        say(collect(job.spec, places))
    reserve = 0.0 if settings.exclusive else reserved_seconds(todo, budget)
    thrifty = budget is not None
    needs = Needs(
        known,
        settings.runs_per_gpu(len(places.devices)),
        seeds_first=settings.engine == "local" or thrifty,
        thrifty=thrifty,
    )
    units = _units(rest, places, settings, deadline.earlier(reserve), needs)
    units = [replace(unit, portable=portable is not None) for unit in units]
    busy = _run(units, settings, say)
    _run([replace(unit, patient=True) for unit in units if unit.spec.name in busy], settings, say)
    time_exclusively(todo, places.runs, places.results, places.devices, settings.engine, deadline)
    if portable is not None:
        export(portable, store.read(places.results), places.runs)  # with times, and what other commands have recorded
    return outcomes


def _units(rest: Sequence[Job], places: Places, settings: RunSettings, deadline: Deadline, needs: Needs) -> list[Unit]:
    """In the order in which they start; several devices take turns."""
    devices, there = places.devices, places.absolute()
    return [
        Unit(
            job.spec,
            dict(job.shifts),
            there,
            devices[k % len(devices)],
            deadline,
            exclusive=settings.exclusive,
            progress=settings.progress and settings.exclusive,
            force=settings.force,
            need=needs.of(job, devices[k % len(devices)]),
            figure_data=job.figure_data,
            pilot=job.pilot,
            seconds=needs.seconds(job, devices[0]),
            members=job.members,
        )
        for k, job in enumerate(needs.ordered(rest))
    ]


def _run(units: Sequence[Unit], settings: RunSettings, say: Report) -> set[str]:
    """Make the runs; returns the names of those that another process is making."""
    busy = set()
    results = engines.run(
        work, units, settings.workers, engine=settings.engine, needs=lambda unit: unit.need, lost=worker_lost
    )
    with closing(results):
        for outcome in results:
            if outcome.state == "busy":
                busy.add(outcome.name)
            else:
                say(outcome)
    return busy


def _check_budget(rest: Sequence[Job], budget: float) -> None:
    least = min(rest, key=lambda j: j.seconds)
    if budget < least.seconds:
        raise UserError(
            f"a budget of {budget:.0f} s is too small for even one run: the shortest that is left, {least.spec.name}, "
            f"takes about {least.seconds:.0f} s; give a larger --budget, or none"
        )
