"""``spdebench table``: the paper's tables and figures, filled from run records, planned, or run."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spdebench.cli.output import Engine, Force, Json, KnownRecords, duration, print_json, print_table
from spdebench.engines import check_engine
from spdebench.errors import UserError, unknown
from spdebench.progress import Progress
from spdebench.registry import command

if TYPE_CHECKING:
    from spdebench.campaign import plan
    from spdebench.campaign.needs import Needs, RunSettings
    from spdebench.campaign.request import Campaign
    from spdebench.campaign.unit import Places, RunOutcome
    from spdebench.paper.base import Edition, Table
    from spdebench.records import Records
from spdebench.cli.plan_text import print_plan

LONG = 24 * 3600.0  # if the missing runs take longer than this (in seconds), the plan also suggests smaller requests


def table(
    name: Annotated[str, typer.Argument(help="Name of a table or figure, or 'all'; 'list' prints the names.")],
    plan_only: Annotated[
        bool, typer.Option("--plan", help="Print which runs are done or missing, and how long the missing ones take.")
    ] = False,
    run: Annotated[bool, typer.Option("--run", help="Train the missing runs.")] = False,
    budget: Annotated[
        str, typer.Option(help="Time limit for --run, such as 25m or 1h30m; with --plan: list the runs that fit.")
    ] = "",
    only: Annotated[
        str,
        typer.Option(
            help="Only these rows: models or parts of labels, with commas; 'kpz fno' matches rows with both words."
        ),
    ] = "",
    seeds: Annotated[int, typer.Option(help="Training seeds of each cell.")] = 3,
    edition: Annotated[str, typer.Option(help="Which edition of the data: paper or converged.")] = "paper",
    format: Annotated[str, typer.Option(help="text, md, latex, csv or html.")] = "text",
    results: KnownRecords = None,
    runs: Annotated[Path, typer.Option(help="Folder of runs.")] = Path("runs"),
    data: Annotated[Path, typer.Option(help="Folder of datasets.")] = Path("data"),
    device: Annotated[
        str,
        typer.Option(
            help="cpu or cuda; several (cuda:0,cuda:1) are used in turn; --plan also accepts devices of other machines."
        ),
    ] = "cpu",
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Number of simultaneous runs (default: 1, or as many as use a GPU fully; ray: as many as fit there)."
        ),
    ] = None,
    engine: Engine = "local",
    per_gpu: Annotated[
        int, typer.Option(help="Number of runs that share a GPU (0: as given by --jobs; on a cluster 1).")
    ] = 0,
    portable: Annotated[
        Path | None,
        typer.Option(
            help="Folder for 'spdebench merge' on another machine: new records and unfinished runs of small models."
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show a table: our numbers next to the published ones. Plan or train its missing runs with --plan and --run."""
    from spdebench.campaign import plan
    from spdebench.campaign.deadline import budget_seconds
    from spdebench.campaign.needs import RunSettings
    from spdebench.campaign.request import Campaign
    from spdebench.campaign.schedule import schedule_facts
    from spdebench.campaign.selection import cells_of
    from spdebench.campaign.unit import Places
    from spdebench.data.checks import check_where, device_kind
    from spdebench.paper.catalogue import TABLES
    from spdebench.paper.catalogue import table as find
    from spdebench.records import store

    if name == "list":
        rows = [{"name": t.name, "kind": t.kind, "paper": t.source, "title": t.title} for t in TABLES]
        print_json(rows) if as_json else print_table(rows)
        return
    _check(plan_only, run, budget, format, edition, jobs, portable)
    _check_engine(run, plan_only, engine, per_gpu, device)
    devices = tuple(device.split(","))
    for each in devices:
        check_where(each, engine) if run else device_kind(each)  # one can plan for a device of another machine
    settings = RunSettings(jobs, engine, per_gpu, progress=sys.stderr.isatty() and not as_json, force=force)
    settings = settings.for_devices(devices, os.cpu_count() if run else None)
    chosen = list(TABLES) if name == "all" else [find(name)]
    which: Edition = "paper" if edition == "paper" else "converged"
    known = store.known(results)
    if not plan_only and not run:
        if results is not None and not results.exists():
            raise UserError(
                f"no such folder of run records: {results}; name another with --results, or make it with --run"
            )
        _show(chosen, known, seeds, which, only, format, as_json)
        return
    kept, needs = cells_of(chosen, seeds, which, only, known), settings.needs(known, devices)
    seconds = budget_seconds(budget) if budget else None
    if plan_only:
        jobs_left = plan.jobs(kept, known, runs, devices[0])
        later = plan.waiting(kept, known, runs, devices[0])
        facts = plan.overview(kept, jobs_left, data, [each.job for each in later])
        if facts["total"]["seconds"] > LONG:
            facts["shorter"] = plan.shorter_requests(kept, known, runs, device)
        if seconds is not None:
            facts["schedule"] = schedule_facts(jobs_left, known, settings, devices, seconds, later)
        if as_json:
            cells = cells_of(chosen, seeds, which)
            published = [p for p in plan.published_status(cells, known) if p["table"] in {t.source for t in chosen}]
            print_json(facts | {"published": published})
        else:
            left = [each for each in jobs_left if each.status != "done"]
            print_plan(facts, data, needs.total_seconds(left, devices, settings.workers or 1), settings.at_once_text)
        return
    places = Places(str(data), str(runs), str(results or store.FOLDER), devices)
    names = tuple(each.name for each in chosen)
    campaign = Campaign(tables=names, seeds=seeds, edition=which, only=only, device=devices[0])
    todo = plan.jobs(kept, known, runs, devices[0])
    tuned = [each for each in chosen if each.name in {cell.table for cell in kept if cell.pilots}]

    def after_pilots() -> list[plan.Job]:
        now = store.known(results)
        return plan.jobs(cells_of(tuned, seeds, which, only, now), now, runs, devices[0])

    waits = len(plan.waiting(kept, known, runs, devices[0]))
    outcomes = _run(todo, waits, after_pilots, places, settings, needs, campaign, seconds, as_json, portable)
    if name != "all" and not as_json:
        _show(chosen, store.known(results), seeds, which, only, format, False)
    if any(o.state in ("failed", "unrecorded") for o in outcomes):
        raise typer.Exit(1)


def _check(
    plan_only: bool, run: bool, budget: str, format: str, edition: str, jobs: int | None, portable: Path | None
) -> None:
    """Raise an error for options that do not go together, and for values that no option has."""
    from spdebench.paper.base import EDITIONS
    from spdebench.report.tables import FORMATS

    if plan_only and run:
        raise UserError("--plan and --run cannot be combined; look at --plan first, then type --run")
    if budget and not run and not plan_only:
        raise UserError("--budget limits the runs of --run, or of the plan of --plan; add one of these")
    if portable is not None and not run:
        raise UserError("--portable is the folder to which --run exports; add --run")
    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs must be at least 1, got {jobs}")
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    if edition not in EDITIONS:
        raise unknown("edition", edition, EDITIONS)


def _check_engine(run: bool, plan_only: bool, engine: str, per_gpu: int, device: str) -> None:
    """Raise an error if the options on engine and GPU do not fit the command."""
    check_engine(engine)
    if not run and not plan_only and (engine != "local" or per_gpu):
        raise UserError("--engine and --per-gpu say how --run makes runs, and --plan plans them; add one of these")
    if per_gpu < 0 or (per_gpu and not device.startswith("cuda")):
        raise UserError(
            f"--per-gpu is a number of runs that share a GPU, with --device cuda; got {per_gpu} on {device}"
        )


def _show(
    chosen: list[Table], known: Records, seeds: int, edition: Edition, only: str, format: str, as_json: bool
) -> None:
    """Print the tables, filled with the known records; ``only`` keeps the cells that match it."""
    from spdebench.campaign.selection import matching, with_named
    from spdebench.paper.fill import fill, narrowed
    from spdebench.report.tables import render, tidy

    filled = [fill(with_named(each, only), known, seeds, edition) for each in chosen]
    if only:
        kept = {id(cell) for cell in matching([e.cell for each in filled for e in each.entries], only)}
        narrow = [narrowed(each, lambda cell: id(cell) in kept) for each in filled]
        filled = [each for each in narrow if each.entries]
    if as_json:
        print_json([row for each in filled for row in tidy(each)])
        return
    for k, each in enumerate(filled):
        out = render(each, format)
        if format == "csv" and k:
            out = out.split("\n", 1)[1]  # one header for all
        typer.echo(out, nl=format != "csv" and k + 1 < len(filled))


def _run(
    todo: list[plan.Job],
    waits: int,
    after_pilots: Callable[[], list[plan.Job]],
    places: Places,
    settings: RunSettings,
    needs: Needs,
    campaign: Campaign,
    budget: float | None,
    as_json: bool,
    portable: Path | None,
) -> list[RunOutcome]:
    """Make the missing runs that fit into the budget, and print one line per run."""
    from spdebench.campaign.run import fill_missing

    left = [j for j in todo if j.status != "done"]

    def announce() -> None:
        """Print what will be made, about how long it takes, and what would make it faster."""
        if as_json:
            return
        within = f", at most {duration(budget)} now" if budget else ""
        workers = settings.workers or 1
        cost = duration(needs.total_seconds(left, places.devices, workers))
        sharing = f" with {settings.at_once_text}" if settings.at_once_text else ""
        typer.echo(f"{len(todo) - len(left)} runs are done, {len(left)} to make, about {cost}{sharing}{within}")
        if waits:
            typer.echo(f"{waits} runs wait for pilots, which choose their learning rate")
        if left and places.devices[0].startswith("cuda") and workers > len(places.devices) and not shares_gpu_well():
            typer.echo("runs on one GPU take turns without NVIDIA's multi-process service: nvidia-cuda-mps-control -d")

    total = len(left) + waits
    with Progress(total, "runs", enabled=settings.progress) as bar:

        def report(outcome: RunOutcome) -> None:
            bar.advance()
            if not as_json and outcome.state != "left":
                typer.echo(f"{bar.done}/{max(total, bar.done)} {_line(outcome)}")

        outcomes = fill_missing(
            todo,
            places,
            settings,
            budget=budget,
            report=report,
            campaign=campaign,
            portable=portable,
            after_pilots=after_pilots,
            before_first_run=announce,
        )
    if as_json:
        print_json({"outcomes": [{"name": o.name, "state": o.state, "message": o.message} for o in outcomes]})
        return outcomes
    states = Counter(o.state for o in outcomes)
    if left:
        typer.echo(", ".join(f"{n} {state}" for state, n in states.items()))
        if states["paused"] or states["left"]:
            typer.echo("the budget is used up; the same command continues")
    if portable is not None:
        typer.echo(f"next, where the records are kept: {command('merge', portable)}")
    return outcomes


def shares_gpu_well() -> bool:
    """Whether NVIDIA's multi-process service runs here, or its command is not installed, so that no advice is given."""
    folder = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
    return shutil.which("nvidia-cuda-mps-control") is None or (folder / "control").exists()


def _line(outcome: RunOutcome) -> str:
    """One run in one line: name, state, error, time and message."""
    from spdebench.records.summary import MAIN

    value = outcome.record.value(MAIN) if outcome.record and MAIN in outcome.record.scores else None
    error = "" if value is None else f"  rel_l2 {value:.4g}"
    return f"{outcome.name}  {outcome.state}{error}  {duration(outcome.seconds)}  {outcome.message}".rstrip()
