"""``spdebench compare``: runs side by side, with paired tests."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from spdebench.cli.output import Json, KnownRecords, check_file_option, print_json, print_table
from spdebench.registry import command


def compare(
    runs: Annotated[list[str], typer.Argument(metavar="RUN RUN...", help="Folders of runs, or names of run records.")],
    metric: Annotated[str, typer.Option(help="The metric to test; it must have one value per sample.")] = "rel_l2",
    figure: Annotated[
        Path | None,
        typer.Option("--figure", "--out", callback=check_file_option, help="Also draw a figure: PNG, SVG or PDF."),
    ] = None,
    results: KnownRecords = None,
    as_json: Json = False,
) -> None:
    """Compare runs on the same test samples.

    The scores are printed side by side, and each pair of runs is tested for a difference.
    """
    from spdebench.records import store
    from spdebench.report import save
    from spdebench.report.figures.comparison import plot_comparison
    from spdebench.training.compare_runs import compare_runs
    from spdebench.training.folder import is_run

    known = {} if all(map(is_run, runs)) else store.known(results)
    found = compare_runs(runs, known, metric)
    if figure is not None:
        save(plot_comparison(found), figure)
    if as_json:
        print_json(found.to_dict())
        return
    typer.echo(f"{found.overview()[0]}")
    print_table(found.rows())
    for line in found.remarks():
        typer.echo(line)
    typer.echo(f"\npaired tests on {metric}, p-values after Holm's correction")
    print_table(found.test_rows())
    again = command("compare", shlex.join(runs), "--figure compare.png")
    typer.echo(f"\n{figure}" if figure else f"\nnext: {again}")
