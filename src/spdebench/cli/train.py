"""``spdebench train``: train a model on a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from spdebench import spec
from spdebench.cli.output import Device, Json, duration, print_json
from spdebench.tasks import Task
from spdebench.training import Run, RunSpec
from spdebench.training import train as fit
from spdebench.training.identity import identify
from spdebench.training.words import Request, sort_words

Model = Annotated[str, typer.Argument(help="Name of the model; see 'spdebench list models'.")]
Data = Annotated[Path, typer.Argument(help="The dataset file.")]
Fields = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Fields of the task, of the model and of the training, by name."),
]
Inputs = Annotated[str, typer.Option(help="xi or u0+xi; by default what the data have.")]
Mix = Annotated[list[Path] | None, typer.Option(help="Another dataset to train on as well; may be given again.")]
Out = Annotated[Path, typer.Option(help="Folder for the run's folder.")]
Checkpoint = Annotated[float, typer.Option(help="Seconds between checkpoints; 0: after each epoch.")]
Cache = Annotated[Path | None, typer.Option(help="Folder in which costly features are kept between runs.")]


def train(
    model: Model,
    data: Data,
    words: Fields = None,
    inputs: Inputs = "",
    mix: Mix = None,
    out: Out = Path("runs"),
    device: Device = "cpu",
    no_resume: Annotated[bool, typer.Option("--no-resume", help="Begin an unfinished run anew.")] = False,
    no_predictions: Annotated[bool, typer.Option("--no-predictions", help="Do not keep the test predictions.")] = False,
    checkpoint: Checkpoint = 30.0,
    cache: Cache = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write logs for TensorBoard too.")] = False,
    as_json: Json = False,
) -> None:
    """Train a model, choose it on validation, score it once on the test part; resumable, never done twice."""
    request = sort_words(model, spec.parse_words(words or []))
    task = make_task(data, inputs, mix, request)
    planned = identify(model, task, request.config, request.options)
    there = (out / planned.name / "record.json").exists()
    if not as_json and not there:
        typer.echo(announcement(planned, task))
    run = fit(
        model,
        task,
        out=out,
        device=device,
        config=request.config,
        resume=not no_resume,
        keep_predictions=not no_predictions,
        checkpoint=checkpoint,
        cache=cache,
        tensorboard=tensorboard,
        **request.options,
    )
    if as_json:
        print_json(run.record.to_dict())
    else:
        _say_result(run, data, there)


def make_task(data: Path, inputs: str, mix: list[Path] | None, request: Request) -> Task:
    """The task that a command asks for."""
    fields: dict[str, Any] = {**request.task, **({"inputs": inputs} if inputs else {})}
    return Task([data, *(mix or [])], **fields)


def announcement(planned: RunSpec, task: Task) -> str:
    """What will be done, in one line."""
    count = planned.build().counts()["parameters"]
    size = f"{count:,} parameters" if count else "nothing to train"
    parts = f"{len(task.train)} samples to train on, {len(task.val)} to validate, {len(task.test)} to test"
    epochs = f"; up to {planned.options['epochs']} epochs" if planned.options["epochs"] else ""
    return f"{planned.model}, {size}; task {task.spec.inputs} of {planned.equation}, {parts}{epochs}"


def _say_result(run: Run, data: Path, there: bool) -> None:
    record, score = run.record, run.scores["rel_l2"]
    ends = f" [{score.interval.low:.4g}, {score.interval.high:.4g}]" if score.interval else ""
    if there:
        typer.echo(f"{run.path}: there already, rel_l2 {score.value:.4g}{ends}")
    else:
        val = "" if record.val is None else f", best validation {record.val:.4g} at epoch {record.best_epoch}"
        took = f" of {record.epochs}, {duration(record.training_seconds or 0.0)}" if record.epochs else ""
        typer.echo(f"{run.path}: rel_l2 {score.value:.4g}{ends}{val}{took}")
    typer.echo(f"next: spdebench evaluate {run.path}    spdebench predict {run.path} {data}")
