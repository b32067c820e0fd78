"""``spdebench merge``: add the records and unfinished runs of another machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spdebench.cli.output import Json, print_json


def merge(
    folder: Annotated[Path, typer.Argument(help="A folder that 'table --run --portable' wrote.")],
    results: Annotated[Path, typer.Option(help="Folder of run records.")] = Path("results"),
    runs: Annotated[Path, typer.Option(help="Folder of runs.")] = Path("runs"),
    as_json: Json = False,
) -> None:
    """Add records and unfinished runs of another machine.

    'table --run --portable' writes them there, and 'table --run' continues the unfinished runs here.
    """
    from spdebench.campaign.portable import merge as take

    moved = take(folder, results, runs)
    if as_json:
        print_json({"records": moved.records, "unfinished": moved.unfinished})
        return
    typer.echo(f"{moved.records} records added to {results}, {moved.unfinished} unfinished runs to {runs}")
