"""``spdebench results``: the results page and README's headline, from run records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spdebench.cli.output import KnownRecords, check_file_option
from spdebench.errors import UserError
from spdebench.files import write_text


def results(
    folder: KnownRecords = None,
    out: Annotated[
        Path | None,
        typer.Option(callback=check_file_option, help="Markdown file to write; by default the page is printed."),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(callback=check_file_option, help="CSV file to write, one line per number.")
    ] = None,
    readme: Annotated[
        Path | None, typer.Option(help="A README whose generated parts (between marks) are replaced.")
    ] = None,
) -> None:
    """Write our numbers next to the published ones.

    The page and the tables of README are computed from run records.
    """
    from spdebench.records import store
    from spdebench.report import headline
    from spdebench.report.results import numbers_csv, page

    known = store.known(folder)
    if not known:
        raise UserError(
            f"no run record in {folder or store.FOLDER}; choose another with --results, or make runs: spdebench table"
        )
    text = page(known)
    if readme is not None:
        typer.echo("\n".join(map(str, headline.write_pages(known, readme))))
    if csv is not None:
        write_text(csv, numbers_csv(known))
        typer.echo(f"{csv}")
    if out is not None:
        write_text(out, text)
        typer.echo(f"{out}")
    elif readme is None and csv is None:
        typer.echo(text, nl=False)
