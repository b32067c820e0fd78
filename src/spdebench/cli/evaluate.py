"""``spdebench evaluate``: score a prediction against a dataset, or show and extend the scores of a run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from spdebench.cli.output import Device, Json, print_json, print_table
from spdebench.data import open_dataset
from spdebench.data.generate import check_device
from spdebench.data.predictions import ensembles, read_prediction
from spdebench.errors import UserError
from spdebench.files import plain_name
from spdebench.metrics import PAPER
from spdebench.metrics import evaluate as score
from spdebench.metrics import floors as marks
from spdebench.training import open_run, part_for, score_on


def evaluate(
    prediction: Annotated[
        Path, typer.Argument(help="A run's folder, or predicted u: .npy or .npz (N T X..), or a native dataset file.")
    ],
    truth: Annotated[
        Path | None, typer.Option(help="The dataset file with the true u; for a run: another one to test it on.")
    ] = None,
    rows: Annotated[str, typer.Option(help="Samples of the truth that were predicted, START:STOP.")] = "",
    metrics: Annotated[str, typer.Option(help="paper, default, all, or names with commas.")] = "default",
    no_t0: Annotated[bool, typer.Option("--no-t0", help="The prediction lacks the frame at t=0.")] = False,
    floors: Annotated[
        bool,
        typer.Option(
            "--floors",
            help="Also score an independent ensemble, a finer solution and trivial predictions, for comparison.",
        ),
    ] = False,
    label: Annotated[str, typer.Option(help="Name under which a run stores its scores on --truth.")] = "",
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Score a prediction with all metrics and confidence intervals, or show the scores of a run."""
    if not prediction.exists():
        raise UserError(f"no such file or folder: {prediction}")
    if prediction.is_dir():
        if rows or no_t0 or floors:
            raise UserError("--rows, --no-t0 and --floors are for a prediction, not for a run's folder")
        if label and truth is None:
            raise UserError("--label names the scores on another dataset: give it with --truth FILE")
        _of_run(prediction, truth, metrics, label, device, as_json)
        return
    if label:
        raise UserError("--label is for a run's folder; the scores of a prediction are only shown")
    if device != "cpu":
        raise UserError("--device is for a run's folder, which predicts; a prediction is scored on the processor")
    if truth is None:
        raise UserError("a prediction needs the dataset with the true u: --truth FILE")
    _of_prediction(prediction, truth, rows, metrics, no_t0, floors, as_json)


def _of_prediction(
    prediction: Path, truth: Path, rows: str, metrics: str, no_t0: bool, floors: bool, as_json: bool
) -> None:
    """Print the scores of a predicted u, with reference values if ``floors``."""
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


def _of_run(folder: Path, truth: Path | None, metrics: str, label: str, device: str, as_json: bool) -> None:
    """The scores that a run has, or those on the test part of another dataset."""
    run = open_run(folder)
    if truth is None:
        found = run.record.scores
    else:
        check_device(device)
        found = score_on(run, part_for(run, truth), plain_name(label or truth.stem, "--label"), device=device).scores
    wanted = {"paper": PAPER, "default": tuple(found), "all": tuple(found)}.get(metrics, tuple(metrics.split(",")))
    missing = [name for name in wanted if name not in found]
    if missing and metrics not in ("paper", "default", "all"):
        raise UserError(f"{folder} has no score '{missing[0]}'; it has {', '.join(found)}")
    rows = [{"metric": name, **asdict(found[name])} for name in wanted if name in found]
    if as_json:
        print_json({"run": run.name, "scores": rows})
        return
    print_table(rows)
    shifts = [name for name in run.record.shifts if name != (label or (truth.stem if truth else ""))]
    if shifts:
        typer.echo(f"also scored on: {', '.join(shifts)} (in {run.file('record.json')})")
