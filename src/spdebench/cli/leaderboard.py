"""``spdebench leaderboard``: runs and submissions ranked together, by problem."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spdebench.cli.output import Json, KnownRecords, print_json
from spdebench.errors import UserError, unknown
from spdebench.registry import command


def leaderboard(
    problem: Annotated[
        str, typer.Argument(help="A problem of the suite, or 'all'; by default the best model of each problem.")
    ] = "",
    suite: Annotated[str, typer.Option(help="The suite; 'spdebench suite' lists them.")] = "core",
    submissions: Annotated[Path, typer.Option(help="Folder of submissions.")] = Path("submissions"),
    results: KnownRecords = None,
    format: Annotated[str, typer.Option(help="text, md or csv.")] = "text",
    as_json: Json = False,
) -> None:
    """Rank submissions and our runs on each problem.

    The floor, the best possible score, is shown too.
    """
    from spdebench.challenge import submissions as read_submissions
    from spdebench.records import store
    from spdebench.report.board import listing
    from spdebench.suites import SUITES

    if format not in listing.FORMATS:
        raise unknown("format", format, listing.FORMATS)
    if submissions != Path("submissions") and not submissions.is_dir():
        raise UserError(f"no such folder of submissions: {submissions}; name another with --submissions")
    chosen = SUITES[suite]
    only = "" if problem == "all" else problem
    found = listing.boards(chosen, store.known(results), read_submissions(submissions), only)
    if not found:
        make = command("table core --run")
        raise UserError(f"there is no run and no submission on {only or suite} yet; '{make}' makes runs of core")
    if as_json:
        print_json(listing.tidy(found))
        return
    typer.echo(listing.render(chosen, found, format, whole=bool(problem)), nl=False)
