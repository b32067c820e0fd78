"""``spdebench evaluate``: score a prediction against a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spdebench.cli.output import Json, print_json, print_table
from spdebench.data import open_dataset
from spdebench.data.predictions import ensembles, read_prediction
from spdebench.metrics import evaluate as score
from spdebench.metrics import floors as marks


def evaluate(
    prediction: Annotated[Path, typer.Argument(help="Predicted u: .npy or .npz (N T X..), or a native dataset file.")],
    truth: Annotated[Path, typer.Option(help="The dataset file with the true u.")],
    rows: Annotated[str, typer.Option(help="Samples of the truth that were predicted, START:STOP.")] = "",
    metrics: Annotated[str, typer.Option(help="paper, default, all, or names with commas.")] = "default",
    no_t0: Annotated[bool, typer.Option("--no-t0", help="The prediction lacks the frame at t=0.")] = False,
    floors: Annotated[bool, typer.Option("--floors", help="Add floors and ceilings of each metric.")] = False,
    as_json: Json = False,
) -> None:
    """Score a prediction: all metrics, intervals over test samples, and on request what the scores can mean."""
    dataset = open_dataset(truth)
    predicted, true = read_prediction(prediction, dataset, rows, has_t0=not no_t0)
    chosen = metrics if metrics in ("paper", "default", "all") else metrics.split(",")
    times = dataset.times[1:] if no_t0 else dataset.times
    scores = score(predicted, true, dataset.grid, metrics=chosen, has_t0=not no_t0, times=times)
    table = None
    if floors:
        independent, converged = ensembles(dataset, rows, has_t0=not no_t0)
        table = marks(
            true,
            dataset.grid,
            independent=independent,
            converged=converged,
            metrics=chosen,
            has_t0=not no_t0,
            times=times,
        ).rows()
    if as_json:
        print_json({"scores": scores.to_dict(), **({"floors": table} if table else {})})
        return
    typer.echo(str(scores))
    if table:
        typer.echo("")
        print_table(table)
