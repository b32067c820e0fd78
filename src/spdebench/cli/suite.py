"""``spdebench suite``: list suites, or print, generate or verify the problems of a suite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spdebench.cli.output import Device, Json, print_json, print_table, size
from spdebench.errors import UserError
from spdebench.registry import command

if TYPE_CHECKING:
    from spdebench.report.suite_folder import Checked


def suite(
    name: Annotated[str, typer.Argument(help="Name of a suite; by default all suites are listed.")] = "",
    generate: Annotated[
        bool,
        typer.Option("--generate", help="Generate the datasets, cards, pictures and splits; existing files are kept."),
    ] = False,
    verify: Annotated[
        Path | None, typer.Option("--verify", metavar="DIR", help="Verify the datasets of the suite in this folder.")
    ] = None,
    only: Annotated[str, typer.Option(help="Only the problem with this name, or the problems of this row.")] = "",
    out: Annotated[Path, typer.Option(help="Folder for the files of --generate.")] = Path("data"),
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """List the suites, or print, generate or verify a suite.

    A suite is a set of problems: datasets with a task and tests on shifted data.
    """
    import torch

    from spdebench.report import suite_folder
    from spdebench.suites import CORE, SUITES
    from spdebench.suites.numbers import SAMPLES

    if not name:
        if generate or verify is not None or only:
            raise UserError("name a suite, such as core; 'spdebench suite' lists them")
        rows = [{"suite": s.name, "problems": len(s.problems), "title": s.title} for s in SUITES.values()]
        print_json(rows) if as_json else print_table(rows)
        return
    if generate and verify is not None:
        raise UserError("--generate and --verify cannot be combined; type one after the other")
    torch.set_num_threads(1)
    chosen = SUITES[name]
    problems = chosen.choose(only)
    if generate:

        def report(label: str, path: Path, existed: bool) -> None:
            if not as_json:
                note = ", already exists" if existed else ""
                typer.echo(f"{label}: {path} ({size(path.stat().st_size)}{note})")

        suite_folder.make(chosen, problems, out, device=device, report=report)
        if as_json:
            print_json({p.name: [str(out / d.file_name) for d in p.datasets().values()] for p in problems})
        else:
            typer.echo(f"cards, pictures and splits: {out / name}")
            typer.echo(f"next: {command(f'suite {name} --verify', out)}")
        return
    if verify is not None:
        _verify(list(suite_folder.check(problems, verify, device)), as_json)
        return
    rows = suite_folder.rows_of(chosen, problems)
    if as_json:
        print_json(rows)
        return
    print_table(rows)
    if chosen is CORE:
        typer.echo(
            f"{', '.join(suite_folder.NUMBERS)}: relative L2 errors, measured on {SAMPLES} samples of each problem; "
            f"'{command('leaderboard')}' prints those of models on all samples"
        )
    typer.echo(f"next: {command(f'suite {name} --generate')}")


def _verify(datasets: list[Checked], as_json: bool) -> None:
    """Print the state of all datasets of a suite; the exit code is 1 if one is not good."""
    bad = [each for each in datasets if not each.good]
    if as_json:
        print_json([{"dataset": c.label, "file": str(c.path), "good": c.good, "error": c.error} for c in datasets])
    else:
        for each in datasets:
            state = "good" if each.good else each.error or "differs from what its seed gives"
            typer.echo(f"{each.label}: {state}")
        typer.echo(f"{len(datasets) - len(bad)} of {len(datasets)} datasets are good")
    if bad:
        raise typer.Exit(1)
