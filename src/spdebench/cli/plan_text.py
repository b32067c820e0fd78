"""What ``spdebench table --plan`` prints: runs done and missing, their time, and the runs that fit into a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from spdebench.cli.output import duration, print_table, size
from spdebench.registry import command


def print_plan(facts: dict[str, Any], data: Path, total: float, at_once: str) -> None:
    """Print the plan: runs that are done and missing, their time, and advice if it is long."""
    rows = [*facts["tables"], facts["total"]]
    print_table([{k: v for k, v in row.items() if k != "seconds"} | {"time": duration(row["seconds"])} for row in rows])
    if len(facts["tables"]) > 1:
        typer.echo("a run that two tables share counts in both, and once in the total")
    if waiting := facts["total"]["waiting"]:
        typer.echo(f"{waiting} runs wait for pilots, which choose their learning rate")
    if again := facts["made_again"]:
        lacking = ", ".join(dict.fromkeys(name for names in again.values() for name in names))
        typer.echo(
            f"recorded runs that are made again: {len(again)}, because their records lack {lacking} and the folders "
            "of these runs are not here"
        )
    if missing := len(facts["datasets"]["missing"]):
        typer.echo(
            f"{missing} datasets must be generated first, about {size(facts['datasets']['bytes'])} in the folder {data}"
        )
    if left := facts["total"]["seconds"]:
        aside = f" ({duration(total)} with {at_once})" if at_once else ""
        typer.echo(f"about {duration(left)} are left{aside}; next: the same command with --run instead of --plan")
    if facts.get("shorter"):
        typer.echo("too long for this machine? The same command with")
        where = {"--device cuda": " on an NVIDIA H200"}
        for option, seconds in facts["shorter"].items():
            typer.echo(f"  {option:<24} takes about {duration(seconds)}{where.get(option, '')}")
        typer.echo(f"  {'--run --budget 1h':<24} works for an hour; repeated, it continues")
        typer.echo(f"or train one small model: {command('train fno DATA width=8 layers=2 epochs=3')}")
    if "schedule" in facts:
        _print_schedule(facts["schedule"])


def _print_schedule(planned: dict[str, Any]) -> None:
    """Print the runs that fit into a budget, in the order in which they start."""
    times = ("starts at", "takes")
    print_table([{k: duration(v) if k in times else v for k, v in row.items()} for row in planned["runs"]])
    typer.echo(
        f"within the budget{f', with {together}' if (together := planned['together']) else ''}, "
        f"{len(planned['runs'])} runs would end: "
        f"{planned['published']} published numbers and {planned['rows']} rows of leaderboards that have no run yet"
    )
