"""Fill the missing cells of tables: make the data, train, score on other data where wanted, and record each run as
soon as it is finished. Whatever stops a campaign, the same command continues it.

The first seed of every cell comes first, in it models without training and then the longest runs. With a budget the
runs come first that give the most published numbers and rows of leaderboards per second, and a run that cannot end
comes after all that can. With ``portable`` an unfinished run of a small model is carried to another machine, and a
larger one only starts if it can end. On a cluster without a budget the longest runs simply start first.

All runs are made in one pool: a run whose learning rate pilots choose joins it when the last of them has a record, so
that no worker waits for the pilots of another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

from spdebench import engines
from spdebench.campaign.deadline import FOREVER, Deadline
from spdebench.campaign.exclusive_timing import reserved_seconds, time_exclusively
from spdebench.campaign.needs import Needs, RunSettings
from spdebench.campaign.one_run import collect, failed_outcome, has_record, make_run
from spdebench.campaign.plan import Job
from spdebench.campaign.portable import PeriodicExport, export
from spdebench.campaign.request import Campaign
from spdebench.campaign.unit import Places, RunOutcome, Unit
from spdebench.data.checks import check_folder, check_where
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
    after_pilots: Callable[[], Sequence[Job]] = tuple,
    before_first_run: Callable[[], None] | None = None,
) -> list[RunOutcome]:
    """Make every run that is not done, as far as the ``budget`` (seconds) goes.

    While runs are made and at the end ``portable``, a folder, gets all that another machine needs to continue.
    Each time that a pilot has ended, ``after_pilots`` is called for the jobs as they are then. ``before_first_run`` is
    called when no check has raised an error.
    """
    ready, rest = _ready_and_rest(todo, places)
    _check(rest, places, settings, budget, portable)
    if before_first_run:
        before_first_run()
    deadline = Deadline.after(FOREVER if budget is None else budget)
    outcomes: list[RunOutcome] = []
    known = store.read(places.results)

    def note(outcome: RunOutcome) -> None:
        """Keep an outcome and tell the caller."""
        outcomes.append(outcome)
        if (record := outcome.record) is not None:
            before = known.get(record.digest)
            known[record.digest] = record if before is None else before.filled_from(record)
        if report:
            report(outcome)

    if campaign is not None:
        campaign.write(places.runs)
    for job in ready:
        note(collect(job.spec, places, settings.force))
    reserve = 0.0 if settings.exclusive else reserved_seconds(todo, known, budget)
    thrifty = budget is not None
    local = settings.engine == "local"
    needs = settings.needs(known, places.devices, seeds_first=local or thrifty, thrifty=thrifty)

    def units_of(jobs: Sequence[Job]) -> list[Unit]:
        """Units whose runs end, or are paused, in time for the measurement of inference times."""
        end = deadline.earlier(reserve)
        return [
            replace(
                unit,
                portable=portable is not None,
                must_end=budget is not None,
                need=replace(unit.need, start_by=end.monotonic - unit.seconds),
            )
            for unit in _units(jobs, places, settings, end, needs)
        ]

    pool = _Pool(settings, note, units_of, after_pilots, pilot_ended=any(job.pilot for job in ready))
    with nullcontext() if portable is None else PeriodicExport(portable, known, places.runs):
        pool.make(rest)
    time_exclusively([*todo, *pool.joined], places.runs, places.results, places.devices, settings.engine, deadline)
    if portable is not None:
        export(portable, store.read(places.results), places.runs)  # with times, and what other commands have recorded
    return outcomes


def _check(
    rest: Sequence[Job], places: Places, settings: RunSettings, budget: float | None, portable: str | Path | None
) -> None:
    """Raise an error if no run can be made: no such device, too small a budget, or a folder that cannot be written."""
    for device in places.devices:
        check_where(device, settings.engine)
    if budget is not None and rest:
        _check_budget(rest, budget)
    check_folder(Path(places.runs), "--runs")
    if portable is not None:
        check_folder(Path(portable), "--portable")
    store.check_writable(places.results)


def _ready_and_rest(todo: Sequence[Job], places: Places) -> tuple[list[Job], list[Job]]:
    """Runs that have ended and whose record only has to be added to the results, and runs that must be made."""
    ready: list[Job] = []
    rest: list[Job] = []
    for job in todo:
        if job.status != "done":
            complete = job.status == "finished" and not (job.shifts or job.metrics or job.figure_data)
            (ready if complete and has_record(places, job.spec) else rest).append(job)
    return ready, rest


def _units(rest: Sequence[Job], places: Places, settings: RunSettings, deadline: Deadline, needs: Needs) -> list[Unit]:
    """The units of jobs, in the order in which they start; several devices take turns."""
    devices, full_paths = places.devices, places.absolute()
    return [
        Unit(
            job.spec,
            dict(job.shifts),
            full_paths,
            devices[k % len(devices)],
            deadline,
            exclusive=settings.exclusive,
            progress=settings.progress and settings.exclusive,
            force=settings.force,
            need=needs.need_of(job, devices[k % len(devices)]),
            metrics=dict(job.metrics),
            figure_data=job.figure_data,
            pilot=job.pilot,
            seconds=needs.seconds(job, devices[0]),
            members=job.members,
        )
        for k, job in enumerate(needs.ordered(rest))
    ]


class _Pool:
    """Makes units with an engine, also those that were put off and those that are possible when pilots have ended."""

    def __init__(
        self,
        settings: RunSettings,
        note: Report,
        units_of: Callable[[Sequence[Job]], list[Unit]],
        after_pilots: Callable[[], Sequence[Job]],
        pilot_ended: bool,
    ) -> None:
        self.settings, self.note, self.units_of, self.after_pilots = settings, note, units_of, after_pilots
        self.units: dict[str, Unit] = {}
        self.joined: list[Job] = []  # jobs that became possible when pilots had ended
        self.put_off: list[Unit] = []  # units that cannot end before the deadline: they start after all others
        self.busy: list[Unit] = []  # units that another process is making
        self.pilot_ended = pilot_ended  # whether a pilot has ended since `after_pilots` was asked last

    def make(self, rest: Sequence[Job]) -> None:
        """Make the runs; at last those that another process was making are waited for."""
        self._run([*self._units_of_new(rest), *self._new_units()])
        while self.busy:  # waiting for a pilot may make runs possible that the other process has begun too
            busy, self.busy = self.busy, []
            self._run([replace(unit, wait_for_others=True, must_end=False) for unit in busy])

    def _run(self, units: Sequence[Unit]) -> None:
        """Make units and what becomes possible meanwhile."""
        results = engines.run(
            make_run,
            units,
            self.settings.workers,
            engine=self.settings.engine,
            needs=lambda unit: unit.need,
            result_of_lost=failed_outcome,
            new_units=self._new_units,
        )
        with closing(results):
            for outcome in results:
                self._note_or_put_off(outcome)

    def _units_of_new(self, jobs: Sequence[Job]) -> list[Unit]:
        """The units of jobs that are not done and have no unit yet."""
        new = self.units_of([job for job in jobs if job.status != "done" and job.spec.name not in self.units])
        self.units |= {unit.spec.name: unit for unit in new}
        return new

    def _note_or_put_off(self, outcome: RunOutcome) -> None:
        """Note the outcome of a unit, or put the unit off."""
        unit = self.units[outcome.name]
        if outcome.state == "busy":
            self.busy.append(unit)
        elif outcome.state == "late":  # after all that can end
            rank = (math.inf, *unit.need.rank)
            self.put_off.append(replace(unit, must_end=False, need=replace(unit.need, rank=rank)))
        else:
            self.pilot_ended |= unit.pilot
            self.note(outcome)

    def _new_units(self) -> list[Unit]:
        """Units that were put off or have become possible since the last result."""
        found, self.put_off = self.put_off, []
        if self.pilot_ended:
            self.pilot_ended = False
            self.joined = list(self.after_pilots())
            found += self._units_of_new(self.joined)
        return found


def _check_budget(rest: Sequence[Job], budget: float) -> None:
    """Raise an error if the budget is shorter than the shortest of these runs."""
    least = min(rest, key=lambda j: j.seconds)
    if budget < least.seconds:
        raise UserError(
            f"a budget of {budget:.0f} s is too small for even one run: the shortest that is left, {least.spec.name}, "
            f"takes about {least.seconds:.0f} s; give a larger --budget, or none"
        )
