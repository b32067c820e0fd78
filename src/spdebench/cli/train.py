"""``spdebench train``: train a model on a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spdebench import spec
from spdebench.cli.output import Device, Force, Json, duration, print_json
from spdebench.errors import UserError
from spdebench.registry import command

if TYPE_CHECKING:
    from spdebench.tasks import Task
    from spdebench.training import Run, RunSpec
    from spdebench.training.overrides import Overrides


Model = Annotated[str, typer.Argument(help="Name of the model; see 'spdebench list models'.")]
Data = Annotated[Path, typer.Argument(help="The dataset file.")]
Fields = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...", help="Options of the task, of the model and of the training, matched by name."
    ),
]
Inputs = Annotated[
    str, typer.Option(help="xi for the task xi -> u, u0+xi for (u0, xi) -> u; by default the task of the data.")
]
Mix = Annotated[
    list[Path] | None, typer.Option(help="Another dataset to train on as well; the option may be repeated.")
]
Out = Annotated[Path, typer.Option(help="Folder in which the folder of the run is created.")]
Checkpoint = Annotated[float, typer.Option(help="Seconds between checkpoints; 0: after each epoch.")]
Cache = Annotated[Path | None, typer.Option(help="Folder in which expensive features are kept between runs.")]


def train(
    model: Model,
    data: Data,
    overrides: Fields = None,
    inputs: Inputs = "",
    mix: Mix = None,
    out: Out = Path("runs"),
    device: Device = "cpu",
    no_resume: Annotated[bool, typer.Option("--no-resume", help="Start an unfinished run from the beginning.")] = False,
    no_predictions: Annotated[bool, typer.Option("--no-predictions", help="Do not keep the test predictions.")] = False,
    checkpoint: Checkpoint = 30.0,
    cache: Cache = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write logs for TensorBoard.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Train a model and score it on the test part.

    The weights with the best validation error are kept, and the test part is used once. The same command continues
    an unfinished run and does not repeat a finished one.
    """
    from spdebench.training import train as fit
    from spdebench.training.identity import identify
    from spdebench.training.overrides import sort_overrides

    data, words = one_dataset(data, overrides)
    request = sort_overrides(model, spec.parse_overrides(words))
    task = make_task(data, inputs, mix, request)
    planned = identify(model, task, request.config, request.options)
    finished_before = (out / planned.name / "record.json").exists()
    if not as_json and not finished_before:
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
        force=force,
        **request.options,
    )
    if as_json:
        print_json(run.record.to_dict())
    else:
        _print_result(run, data, finished_before)


def one_dataset(data: Path, words: list[str] | None) -> tuple[Path, list[str]]:
    """The dataset and the ``key=value`` words; several datasets are an error that says how to choose.

    A pattern such as ``data/phi41-*.parquet`` also matches the file of members next to a dataset, which is left out.
    """
    further = [word for word in words or [] if word.endswith(".parquet") and "=" not in word]
    files = [data, *map(Path, further)]
    samples = [file for file in files if file.parent / f"{file.name.partition('-members')[0]}.parquet" not in files]
    if len(samples) > 1:
        raise UserError(
            f"one run has one dataset, {len(samples)} were given: choose one, such as {samples[0]}; "
            f"a mixture of files is {samples[0]} --mix {samples[1]}"
        )
    return samples[0], [word for word in words or [] if word not in further]


def make_task(data: Path, inputs: str, mix: list[Path] | None, request: Overrides) -> Task:
    """The task that a command asks for."""
    from spdebench.tasks import Task

    fields: dict[str, Any] = {**request.task, **({"inputs": inputs} if inputs else {})}
    return Task([data, *(mix or [])], **fields)


def announcement(planned: RunSpec, task: Task) -> str:
    """One line that says what will be done."""
    count = planned.build().counts()["parameters"]
    size = f"{count:,} parameters" if count else "no gradient training"
    parts = f"{len(task.train)} training, {len(task.val)} validation and {len(task.test)} test samples"
    most = planned.options["epochs"]
    epochs = f"; up to {most} epoch{'s' if most > 1 else ''}" if most else ""
    return f"{planned.model}, {size}; task {task.spec.text} of {planned.equation}, {parts}{epochs}"


def _print_result(run: Run, data: Path, finished_before: bool) -> None:
    """Print the scores of a run and what to type next; ``finished_before``: it was not trained now."""
    record, scores = run.record, run.scores
    shown = [scores[name] for name in ("energy_score", "rel_l2") if name in scores]
    ends = [f" [{s.interval.low:.4g}, {s.interval.high:.4g}]" if s.interval else "" for s in shown]
    result = ", ".join(f"{s.metric} {s.value:.4g}{end}" for s, end in zip(shown, ends, strict=True))
    if finished_before:
        typer.echo(f"{run.path}: already finished, {result}")
    else:
        epoch = f" at epoch {record.best_epoch} of {record.epochs}" if record.epochs else ""
        best = "best validation" if epoch else "validation"
        val = "" if record.val is None else f", {best} {record.val:.4g}{epoch}"
        took = "" if record.training_seconds is None else f", {duration(record.training_seconds)}"
        typer.echo(f"{run.path}: {result}{val}{took}")
    typer.echo(f"next: {command('evaluate', run.path)}    {command('predict', run.path, data)}")
