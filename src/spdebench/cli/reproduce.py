"""``spdebench reproduce``: make recorded runs again and compare the scores."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spdebench.cli.output import Json, KnownRecords, duration, print_json, print_table
from spdebench.errors import UserError, unknown
from spdebench.progress import Progress
from spdebench.registry import command

if TYPE_CHECKING:
    from spdebench.campaign.reproduce import Reproduction
    from spdebench.campaign.unit import RunOutcome
    from spdebench.paper.base import Edition


def reproduce(
    name: Annotated[str, typer.Argument(help="Name of a table or figure, or 'all'.")],
    only: Annotated[
        str, typer.Option(help="Only these rows, named as for 'table'; 'kpz step' matches rows with both words.")
    ] = "",
    seeds: Annotated[int, typer.Option(help="Training seeds of each cell.")] = 3,
    edition: Annotated[str, typer.Option(help="Which edition of the data: paper or converged.")] = "paper",
    budget: Annotated[str, typer.Option(help="Time limit, such as 25m or 1h30m.")] = "",
    results: KnownRecords = None,
    out: Annotated[Path, typer.Option(help="Folder of the new runs and records.")] = Path("reproduced"),
    data: Annotated[Path, typer.Option(help="Folder of datasets.")] = Path("data"),
    device: Annotated[str, typer.Option(help="cpu or cuda; several (cuda:0,cuda:1) are used in turn.")] = "cpu",
    jobs: Annotated[int | None, typer.Option(help="Number of simultaneous runs.")] = None,
    as_json: Json = False,
) -> None:
    """Make recorded runs again and compare their scores.

    The runs are those of a table; 'table' shows their records. The exit code is 1 if a relative L2 error or an energy
    score differs by more than 2 %, on the test part or on other data, or if a run fails. Nothing is written into the
    folder of the records.
    """
    from spdebench.campaign import plan
    from spdebench.campaign.deadline import budget_seconds
    from spdebench.campaign.needs import RunSettings
    from spdebench.campaign.reproduce import compare_records
    from spdebench.campaign.run import fill_missing
    from spdebench.campaign.selection import cells_of
    from spdebench.campaign.unit import Places
    from spdebench.data.checks import check_where
    from spdebench.paper.base import EDITIONS
    from spdebench.paper.catalogue import TABLES
    from spdebench.paper.catalogue import table as find
    from spdebench.records import store

    if edition not in EDITIONS:
        raise unknown("edition", edition, EDITIONS)
    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs must be at least 1, got {jobs}")
    devices = tuple(device.split(","))
    for each in devices:
        check_where(each, "local")
    which: Edition = "paper" if edition == "paper" else "converged"
    chosen = list(TABLES) if name == "all" else [find(name)]
    known = store.known(results)
    places = Places(str(data), str(out / "runs"), str(out / "results"), devices)
    todo = plan.jobs(cells_of(chosen, seeds, which, only, known), known, places.runs, devices[0], remake=True)
    if not todo:
        raise UserError(f"no run of {name} has a record; {command(f'table {name} --plan')} shows what is missing")
    settings = RunSettings(jobs, progress=sys.stderr.isatty() and not as_json).for_devices(devices, os.cpu_count())
    found: list[Reproduction] = []

    def announce() -> None:
        """Print how many runs are made, about how long they take, and where they go."""
        if not as_json:
            cost = settings.needs(known, devices).total_seconds(todo, devices, settings.workers or 1)
            typer.echo(f"{len(todo)} recorded runs are made again in {out}, about {duration(cost)}")

    with Progress(len(todo), "runs", enabled=settings.progress) as bar:

        def report(outcome: RunOutcome) -> None:
            """Compare a run with its record, and print one line."""
            bar.advance()
            made = outcome.record
            compared = None if made is None else compare_records(known[made.digest], made)
            if compared is not None:
                found.append(compared)
            if not as_json and outcome.state != "left":
                text = compared.verdict if compared is not None else f"{outcome.state}  {outcome.message}".rstrip()
                typer.echo(f"{bar.done}/{len(todo)} {outcome.name}  {text}  {duration(outcome.seconds)}")

        outcomes = fill_missing(
            todo,
            places,
            settings,
            budget=budget_seconds(budget) if budget else None,
            report=report,
            before_first_run=announce,
        )
    failed = {o.name: o.message for o in outcomes if o.state in ("failed", "unrecorded")}
    verdicts = Counter(each.verdict for each in found)
    rows = [_row(each) for each in found]
    if as_json:
        print_json({"runs": rows, "failed": failed, "not_compared": len(todo) - len(found)})
    else:
        print_table(rows)
        counts = [f"{n} {verdict}" for verdict, n in verdicts.items()]
        if left := len(todo) - len(found):
            counts.append(f"{left} not compared")
        typer.echo(f"{', '.join(counts)}; remove {out} to make the runs anew next time")
    if verdicts["different"] or failed:
        raise typer.Exit(1)


def _row(compared: Reproduction) -> dict[str, Any]:
    """The score of a run that differs most, as a row."""
    return {
        "run": compared.name,
        "part": compared.part,
        "metric": compared.metric,
        "recorded": compared.recorded,
        "again": compared.reproduced,
        "difference": compared.difference,
        "verdict": compared.verdict,
        "recorded at": (compared.commit or "-")[:8],
    }
