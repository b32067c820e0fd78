"""``spdebench report``: write the static site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spdebench.cli.output import KnownRecords
from spdebench.errors import UserError


def report(
    results: KnownRecords = None,
    runs: Annotated[Path, typer.Option(help="Folder of runs: learning curves and predictions.")] = Path("runs"),
    data: Annotated[Path, typer.Option(help="Folder of dataset files: pictures and cards.")] = Path("data"),
    submissions: Annotated[
        Path, typer.Option(help="Folder of submissions, which the leaderboard ranks with the runs.")
    ] = Path("submissions"),
    out: Annotated[Path, typer.Option(help="Folder of the site; an older site there is replaced.")] = Path("site"),
) -> None:
    """Write a web site of all results.

    It has the leaderboard, tables, datasets and runs, and can be opened offline.
    """
    import torch

    from spdebench.records import store
    from spdebench.report.site import build_site

    if results is not None and not results.exists():
        raise UserError(f"no such folder of run records: {results}; choose another with --results")
    torch.set_num_threads(1)
    typer.echo(
        f"the site shows the records in {results or store.FOLDER}" + ("" if results else " and of the package") + ", "
        f"and what there is of runs in {runs} and data in {data}"
    )
    first = build_site(store.known(results), out, runs, data, submissions=submissions)
    pages = sum(1 for _ in first.parent.rglob("*.html"))
    typer.echo(f"{pages} pages\nopen {out / 'index.html'}")
