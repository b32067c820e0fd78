"""One run of a campaign as data: what a worker is given to make it, and the outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from spdebench import engines
from spdebench.campaign.deadline import Deadline
from spdebench.data import DatasetSpec
from spdebench.paper.base import AnySpec
from spdebench.records import Record


@dataclass(frozen=True)
class Places:
    """Folders of data, runs and records, and the devices on which runs are made (several take turns)."""

    data: str = "data"
    runs: str = "runs"
    results: str = "results"
    devices: tuple[str, ...] = ("cpu",)

    def absolute(self) -> Places:
        """The same folders by their full paths, for workers, whose current folder may be another."""
        data, runs, results = (str(Path(p).absolute()) for p in (self.data, self.runs, self.results))
        return Places(data, runs, results, self.devices)


@dataclass(frozen=True)
class Unit:
    """One run to make: all that a worker needs.

    ``shifts`` are further datasets, by label, on which the run is scored.
    """

    spec: AnySpec
    shifts: dict[str, DatasetSpec]
    places: Places
    device: str
    deadline: Deadline
    exclusive: bool = True  # whether this command makes one run at a time, and for `_written` whether no other does
    progress: bool = False  # whether to show a progress bar
    force: bool = False  # whether to continue what another version or device has begun
    need: engines.Need = field(default_factory=engines.Need)
    wait_for_others: bool = False  # whether to wait while another process makes this run
    metrics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # part -> metrics beyond the usual ones
    figure_data: tuple[str, ...] = ()  # what figures need from its record
    pilot: bool = False  # whether it tries a learning rate; if it diverges, its record says so
    seconds: float = 0.0  # about how long it takes on this device, shared with others
    portable: bool = False  # whether only small models may be interrupted, because this machine is temporary
    must_end: bool = False  # whether it is postponed if it cannot finish before the deadline
    members: int = 1  # number of members in its datasets of laws

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return Path(self.places.runs) / self.spec.name


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run; the message states the reason.

    added         its record is new in the results
    known         the results had its record already
    unrecorded    it has ended, but its record could not be added to the results
    paused        the deadline has come; if it had trained, its checkpoint is written
    left          it was not started, because the time left is too short
    busy          another process is making it
    late          it is put off, because it cannot end before the deadline; others may
    failed        an error ended it
    """

    name: str
    state: Literal["added", "known", "unrecorded", "paused", "left", "busy", "late", "failed"]
    seconds: float = 0.0
    message: str = ""
    record: Record | None = field(default=None, compare=False)
