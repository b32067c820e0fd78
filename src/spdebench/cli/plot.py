"""``spdebench plot``: draw a dataset or a study of an equation."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated

import torch
import typer

from spdebench import report, spec
from spdebench.cli.output import Words, print_table
from spdebench.data import open_dataset
from spdebench.equations import EQUATIONS
from spdebench.errors import UserError, unknown


def plot(
    kind: Annotated[str, typer.Argument(help="See 'spdebench list plots'.")],
    target: Annotated[str, typer.Argument(help="A dataset file; for studies of an equation, its name.")],
    words: Words = None,
    out: Annotated[Path | None, typer.Option(help="PNG, SVG or PDF file; by default KIND-TARGET.png here.")] = None,
    n: Annotated[int | None, typer.Option("-n", help="Samples of a study (each has its own default).")] = None,
    seed: Annotated[int, typer.Option(help="Seed of a study.")] = 0,
) -> None:
    """Draw a picture of a dataset, or a study of an equation."""
    torch.set_num_threads(1)
    if kind not in report.KINDS:
        raise unknown("plot", kind, report.KINDS)
    draw = report.KINDS[kind][0]
    path = out or Path(f"{kind}-{Path(target).stem}.png")
    table = None
    if "equation" in inspect.signature(draw).parameters:
        fields = spec.parse_words(words or [])
        if kind == "truncation":
            fields = {"sigma": "1", **fields}  # the paper's figure
        equation = spec.build(EQUATIONS[target], fields, target)
        options = {"seed": seed, **({"n": n} if n else {})}
        figure = draw(equation, **options)
        table = report.TABLES[kind](equation, **options)
    else:
        if words:
            raise UserError(f"plot {kind} takes a dataset file and no fields; got {' '.join(words)}")
        figure = draw(open_dataset(target))
    report.save(figure, path)
    if table is not None:
        print_table(table.to_dict("records"))
    typer.echo(f"{path}")
