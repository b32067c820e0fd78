"""``spdebench status``: the progress of a campaign, while it runs or after an interruption."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spdebench.cli.output import Json, KnownRecords, duration, print_json, print_table
from spdebench.errors import one_line
from spdebench.registry import command

if TYPE_CHECKING:
    from spdebench.campaign.status import RunState
    from spdebench.data.generation_status import UnfinishedDataset


def status(
    runs: Annotated[Path, typer.Option(help="Folder of runs.")] = Path("runs"),
    results: KnownRecords = None,
    data: Annotated[Path, typer.Option(help="Folder of datasets.")] = Path("data"),
    as_json: Json = False,
) -> None:
    """Show finished, running, failed and remaining work.

    The work of 'table --run', 'train' and 'generate' is shown; nothing is changed.
    """
    from spdebench.campaign.status import in_state
    from spdebench.campaign.status import status as look
    from spdebench.paper.catalogue import table as find

    found = look(runs, results, data, find)
    if as_json:
        print_json(found.to_dict())
        return
    if not found.runs and not found.making:
        typer.echo(f"no work has been started in {runs} and {data}; next: {command('table NAME --run')}")
        return
    if found.runs:
        rows = found.rows()
        print_table([{k: v for k, v in r.items() if k != "seconds"} | {"time": duration(r["seconds"])} for r in rows])
    for run in in_state(found.runs, "running"):
        typer.echo(one_line(f"running  {_running(run)}"))
    for run in in_state(found.runs, "failed"):
        typer.echo(one_line(f"failed   {run.name}: {run.reason}"))
    for making in found.making:
        typer.echo(one_line(f"data     {_making(making)}"))
    if found.seconds:
        at_a_time = f"{found.side_by_side} run{'s' if found.side_by_side > 1 else ''} at a time"
        typer.echo(f"about {duration(found.seconds)} remain with {at_a_time}")


def _running(run: RunState) -> str:
    epoch = f"epoch {run.epoch} of at most {run.epochs}, " if run.epochs else ""
    return f"{run.name}: {epoch}about {duration(run.seconds)} left ({run.holder})"


def _making(making: UnfinishedDataset) -> str:
    """One line about a dataset that is being made, has failed or was stopped."""
    left = "" if making.seconds is None else f", about {duration(making.seconds)} left"
    state = f" ({making.holder})" if making.holder else f", failed: {making.failed}" if making.failed else ", stopped"
    return f"{making.name}: {making.done} of {making.chunks} chunks{left if making.holder else ''}{state}"
