"""``spdebench plot``: draw a dataset, a study of an equation, the law that a run predicts, or a figure of runs."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated

import typer

from spdebench import spec
from spdebench.cli.output import KnownRecords, SpecFields, check_file_option, check_sample_count, print_table, size
from spdebench.errors import UserError, unknown
from spdebench.registry import command

ANIMATION = "animation"
"""The kind of plot that moves."""


def plot(
    kind: Annotated[str, typer.Argument(help="Kind of plot; see 'spdebench list plots'.")],
    target: Annotated[
        str,
        typer.Argument(
            help="A dataset file; for a study or animation an equation; for a law the folder of a run; for a figure of "
            "runs nothing."
        ),
    ] = "",
    overrides: SpecFields = None,
    out: Annotated[
        Path | None,
        typer.Option(
            callback=check_file_option,
            help="PNG, SVG, PDF (animation: PNG, GIF); by default KIND-TARGET.png in this folder.",
        ),
    ] = None,
    n: Annotated[
        int | None,
        typer.Option(
            "-n", callback=check_sample_count, help="Number of samples of a study (each study has its own default)."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of a study or animation; by default 0.")] = None,
    results: KnownRecords = None,
    dark: Annotated[bool, typer.Option("--dark", help="Use colours for a dark page.")] = False,
    truth: Annotated[
        Path | None, typer.Option(help="For a law: the dataset of the run, if it is not in the folder data.")
    ] = None,
) -> None:
    """Draw a dataset, an equation, a law or a figure of runs.

    A law is predicted by a run that was trained with seen=K.
    """
    import torch

    from spdebench import report
    from spdebench.data import open_dataset
    from spdebench.equations import EQUATIONS
    from spdebench.report.paper_figures import FIGURES
    from spdebench.report.style import darkened

    torch.set_num_threads(1)
    every = FIGURES.keys() | report.KINDS.keys() | report.LAW_KINDS.keys()
    if (n is not None or seed is not None) and kind in every - report.TABLES.keys():
        raise UserError(
            f"-n and --seed are options of the studies {', '.join(report.TABLES)}; plot {kind} does not take them"
        )
    if kind == ANIMATION:
        if n is not None or dark or truth is not None:
            raise UserError(
                f"plot {ANIMATION} shows one sample of an equation; of -n, --dark and --truth it takes none"
            )
        _animate(target, overrides or [], out, seed or 0)
        return
    if kind in FIGURES:
        if target or overrides:
            raise UserError(f"plot {kind} is drawn from the records of runs and takes no '{target}'; give --results")
        _paper(kind, out or Path(f"{kind}.png"), results, dark)
        return
    if truth is not None and kind not in report.LAW_KINDS:
        raise UserError(f"--truth goes with {', '.join(report.LAW_KINDS)}, which draw the law that a run predicts")
    if kind in report.LAW_KINDS:
        _law(kind, target, overrides, out, truth, dark)
        return
    if kind not in report.KINDS:
        raise _unknown(kind)
    if not target or (target.endswith(".parquet") if kind in report.TABLES else target in EQUATIONS):
        what = "an equation, such as phi42" if kind in report.TABLES else "a dataset file, such as data/NAME.parquet"
        given = f", not '{target}'" if target else ""
        raise UserError(f"plot {kind} needs {what}{given}")
    draw = report.KINDS[kind][0]
    path = out or Path(f"{kind}-{Path(target).stem}.png")
    table = None
    if "equation" in inspect.signature(draw).parameters:
        fields = spec.parse_overrides(overrides or [])
        if kind == "truncation":
            fields = {"sigma": "1", **fields}  # the paper's figure
        equation = spec.build(EQUATIONS[target], fields, target)
        options = {"seed": seed or 0, **({} if n is None else {"n": n})}
        figure = draw(equation, **options)
        table = report.TABLES[kind](equation, **options)
    else:
        if overrides:
            raise UserError(f"plot {kind} takes a dataset file and no fields; got {' '.join(overrides)}")
        figure = draw(open_dataset(target))
    report.save(darkened(figure) if dark else figure, path)
    if table is not None:
        print_table(table.to_dict("records"))
    typer.echo(f"{path}")


def _law(kind: str, target: str, overrides: list[str] | None, out: Path | None, truth: Path | None, dark: bool) -> None:
    """Draw the law that a run predicts."""
    from spdebench import report
    from spdebench.report.run_laws import laws_of, ranks_of
    from spdebench.report.style import darkened
    from spdebench.training import open_run

    if not target or overrides:
        raise UserError(f"plot {kind} takes the folder of a run, such as runs/NAME, and no fields")
    run = open_run(target)
    draw = report.LAW_KINDS[kind][0]
    figure = draw(ranks_of(run) if kind == "ranks" else laws_of(run, truth))
    path = out or Path(f"{kind}-{run.name}.png")
    report.save(darkened(figure) if dark else figure, path)
    typer.echo(f"{path}")


def _animate(target: str, overrides: list[str], out: Path | None, seed: int) -> None:
    """Write one path as a moving picture."""
    from spdebench.equations import EQUATIONS
    from spdebench.report.animation import write_animation

    if not target:
        raise UserError(f"plot {ANIMATION} needs an equation, such as nse")
    equation = spec.build(EQUATIONS[target], spec.parse_overrides(overrides), target)
    path = write_animation(equation, out or Path(f"{ANIMATION}-{target}.png"), seed)
    typer.echo(f"{path} ({size(path.stat().st_size)})")


def _paper(name: str, path: Path, results: Path | None, dark: bool) -> None:
    """Draw the runs that there are; list the missing ones and the commands that make them."""
    from spdebench import report
    from spdebench.paper.catalogue import table as find
    from spdebench.paper.fill import fill
    from spdebench.records import store
    from spdebench.report.paper_figures import FIGURES
    from spdebench.report.style import darkened

    filled = fill(find(name), store.known(results))
    drawn = FIGURES[name](filled)
    if drawn.figure is None and filled.done:
        raise UserError(
            f"the records have scores for {name}, but not the data that it shows; "
            f"'{command(f'table {name} --run --seeds 1')}' makes the run again and adds them"
        )
    if drawn.figure is None:
        raise UserError(f"there are no runs of {name} yet; make them with '{command(f'table {name} --run')}'")
    report.save(darkened(drawn.figure) if dark else drawn.figure, path)
    typer.echo(f"{path}")
    for what, words in drawn.missing:
        typer.echo(f"missing {what}:\n  {words}")


def _unknown(kind: str) -> UserError:
    """The error for an unknown plot. A figure that shows data only is drawn by another command, which is named."""
    from spdebench import report
    from spdebench.paper.catalogue import TABLES
    from spdebench.report.paper_figures import FIGURES

    draw = next((t.draw for t in TABLES if t.name == kind), ())
    if draw:
        return UserError(f"figure {kind} is drawn by: {'; '.join(draw)}")
    return unknown("plot", kind, [ANIMATION, *report.KINDS, *report.LAW_KINDS, *FIGURES])
