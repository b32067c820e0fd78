"""The state of campaigns, also while they run: runs done, running, failed (and why) and left, and the time left.

It is read from records (done), locks (running), logs (how far) and `failed.json` (why); nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from spdebench.campaign import plan
from spdebench.campaign.one_run import FAILED
from spdebench.campaign.rates import Rates
from spdebench.campaign.request import Campaign, campaigns
from spdebench.data.generation_status import UnfinishedDataset, unfinished_datasets
from spdebench.engines import holder_of
from spdebench.errors import UserError
from spdebench.paper.base import AnySpec, Table
from spdebench.paper.catalogue import table
from spdebench.records import Records, store
from spdebench.training import RunSpec, open_run
from spdebench.training.folder import read_json, read_log

State = Literal["done", "running", "failed", "left"]
OTHERS = "other runs"  # in the folder, and not part of a campaign


@dataclass(frozen=True)
class RunState:
    """One run: ``epoch`` of at most ``epochs``, seconds left, who makes it (``holder``), why it failed."""

    name: str
    state: State
    seconds: float = 0.0
    epoch: int = 0
    epochs: int = 0
    holder: str = ""
    reason: str = ""


@dataclass(frozen=True)
class CampaignStatus:
    """Runs by table, each once in ``runs``, and the datasets in the making."""

    tables: dict[str, list[RunState]]
    runs: list[RunState]
    making: list[UnfinishedDataset]

    @property
    def side_by_side(self) -> int:
        return max(1, len(in_state(self.runs, "running")))

    @property
    def seconds(self) -> float:
        """About how long it takes until all is done, if as many runs are made at the same time as now."""
        return sum(run.seconds for run in self.runs) / self.side_by_side

    def rows(self) -> list[dict[str, Any]]:
        """One line per table, and the total, in which a run that tables share counts once."""
        rows = [_row(name, runs) for name, runs in self.tables.items()]
        return rows if len(rows) == 1 else [*rows, _row("total", self.runs)]

    def to_dict(self) -> dict[str, Any]:
        return {
            "tables": self.rows(),
            "runs": [asdict(run) for run in self.runs],
            "making": [asdict(making) for making in self.making],
            "side_by_side": self.side_by_side,
            "seconds": self.seconds,
        }


def in_state(runs: Iterable[RunState], state: State) -> list[RunState]:
    return [run for run in runs if run.state == state]


def _row(name: str, runs: Sequence[RunState]) -> dict[str, Any]:
    states: tuple[State, ...] = ("done", "running", "failed", "left")
    counts: dict[str, int] = {state: len(in_state(runs, state)) for state in states}
    return {"table": name, "runs": len(runs), **counts, "seconds": sum(run.seconds for run in runs)}


def status(
    runs: str | Path = "runs",
    results: str | Path | None = None,
    data: str | Path = "data",
    find_table: Callable[[str], Table] = table,
) -> CampaignStatus:
    """Read the folders; a missing folder counts as empty."""
    folder, known = Path(runs), store.known(results)
    seen: dict[str, RunState] = {}
    tables: dict[str, dict[str, RunState]] = {}
    for campaign in campaigns(folder):
        rates = Rates(known, campaign.device)
        for name, jobs in _jobs(campaign, known, folder, find_table).items():
            for job in jobs:
                key = job.spec.name
                if key not in seen:
                    seen[key] = _of_job(job, folder, rates)
                tables.setdefault(name, {})[key] = seen[key]
    others = _others(folder, set(seen), Rates(known))
    if others:
        tables[OTHERS] = others
    states = {name: list(found.values()) for name, found in tables.items()}
    return CampaignStatus(states, [*(seen | others).values()], unfinished_datasets(Path(data)))


def _jobs(
    campaign: Campaign, known: Records, runs: Path, find_table: Callable[[str], Table]
) -> dict[str, list[plan.Job]]:
    """The jobs of the tables of a request, by the name of the table."""
    try:
        cells = campaign.cells(find_table, known)
    except UserError as error:  # it was written for tables that this version does not have
        place = runs / campaign.file_name
        raise UserError(f"{place}: {error}; remove the file, or load a table of your own by --with") from None
    by_digest = {job.spec.digest: job for job in plan.jobs(cells, known, runs, campaign.device)}
    names = dict.fromkeys(cell.table for cell in cells)
    return {
        name: [by_digest[d] for d in dict.fromkeys(r.digest for c in cells if c.table == name for r in c.next_runs)]
        for name in names
    }


def _of_job(job: plan.Job, runs: Path, rates: Rates) -> RunState:
    if job.status == "done":
        return RunState(job.spec.name, "done")
    return _unfinished(job.spec, runs / job.spec.name, job.seconds, rates)


def _unfinished(spec: AnySpec, folder: Path, seconds: float, rates: Rates) -> RunState:
    """The state of a run without a record, from the lock, the log and the reason of failure in its folder."""
    log = read_log(folder / "log.jsonl")
    epochs = int(getattr(spec, "options", {}).get("epochs", 0))
    state = RunState(spec.name, "left", seconds, len(log), epochs)
    if holder := holder_of(folder):
        taken = [float(line.get("seconds", 0.0)) for line in log]
        if taken:
            seconds = max(0.0, rates.epochs(spec) - len(log)) * sum(taken) / len(taken)
        return replace(state, state="running", seconds=seconds, holder=holder)
    if (folder / FAILED).exists():
        return replace(state, state="failed", reason=_reason(folder / FAILED))
    return state


def _reason(path: Path) -> str:
    try:
        return str(read_json(path)["reason"])
    except (UserError, KeyError, TypeError):
        return "its reason cannot be read"


def _others(runs: Path, known: set[str], rates: Rates) -> dict[str, RunState]:
    """Runs that were made one by one; one of a sweep is done when it is trained, for it is not tested."""
    found: dict[str, RunState] = {}
    for path in sorted(runs.glob("*/spec.json")):
        folder = path.parent
        if folder.name in known:
            continue
        try:
            run = open_run(folder)
            spec: RunSpec = run.spec
            done = (run.finished or run.trained) and not holder_of(folder)
            found[folder.name] = (
                RunState(folder.name, "done") if done else _unfinished(spec, folder, rates.seconds(spec), rates)
            )
        except UserError as error:
            found[folder.name] = RunState(folder.name, "failed", reason=str(error))
    return found
