"""``spdebench report``: write the static site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    results: Annotated[Path, typer.Option(help="Folder of collected run records.")] = Path("results"),
    runs: Annotated[Path, typer.Option(help="Folder of runs: learning curves and predictions.")] = Path("runs"),
    data: Annotated[Path, typer.Option(help="Folder of dataset files: pictures and cards.")] = Path("data"),
    out: Annotated[Path, typer.Option(help="Folder of the site; an older site there is replaced.")] = Path("site"),
) -> None:
    """Write leaderboard, tables, datasets and runs as a site that opens offline."""
    import torch

    from spdebench.report.site import build_site

    torch.set_num_threads(1)
    typer.echo(f"site of the records in {results}, the runs in {runs} and the data in {data}, as far as they are there")
    first = build_site(results, out, runs, data)
    pages = sum(1 for _ in first.parent.rglob("*.html"))
    typer.echo(f"{pages} pages\nopen {out / 'index.html'}")
