"""``spdebench evaluate``: score a prediction against a dataset, or show and extend the scores of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spdebench.cli.output import Device, Json, print_json, print_table
from spdebench.errors import UserError, one_line
from spdebench.files import plain_name

if TYPE_CHECKING:
    from spdebench.metrics import Scores
    from spdebench.training import Run


GROUPS = ("paper", "default", "all")


def evaluate(
    prediction: Annotated[
        Path,
        typer.Argument(
            help="A run's folder, or predicted u: .npy or .npz (N T X..), with --part or --run also members of a law "
            "(N m T X..), or a native dataset file."
        ),
    ],
    truth: Annotated[
        Path | None, typer.Option(help="The dataset file with the true u; for a run: a dataset to test it on.")
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(help="The run that made the prediction; its split determines which samples were predicted."),
    ] = None,
    part: Annotated[
        str,
        typer.Option(
            help="The part that was predicted: train, val or test of the default split; with a run also unseen or all "
            "(by default samples that the run has not seen)."
        ),
    ] = "",
    rows: Annotated[str, typer.Option(help="Samples of the truth that were predicted, START:STOP.")] = "",
    metrics: Annotated[str, typer.Option(help="paper, default, all, or names with commas.")] = "default",
    no_t0: Annotated[bool, typer.Option("--no-t0", help="The prediction lacks the frame at t=0.")] = False,
    floors: Annotated[
        bool,
        typer.Option(
            "--floors",
            help="For comparison also score an independent ensemble, a more accurate solution and the mean field.",
        ),
    ] = False,
    label: Annotated[str, typer.Option(help="Name under which a run stores its scores on --truth.")] = "",
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Score a prediction, or show the scores of a run.

    Scores have confidence intervals.
    """
    from spdebench.training import open_run

    if not prediction.exists():
        raise UserError(f"no such file or folder: {prediction}")
    chosen = metrics if metrics in GROUPS else [name.strip() for name in metrics.split(",") if name.strip()]
    _labels(chosen)  # an unknown metric is an error before anything is computed or written
    if prediction.is_dir():
        if rows or no_t0 or floors or run:
            raise UserError("--rows, --no-t0, --floors and --run are for a prediction, not for a run's folder")
        if (label or part) and truth is None:
            raise UserError("--label and --part are for scores on a dataset: give it with --truth FILE")
        _of_run(open_run(prediction), truth, part, chosen, label, device, as_json)
        return
    if label:
        raise UserError("--label is for a run's folder; the scores of a prediction are only shown")
    if device != "cpu":
        raise UserError("--device is for a run's folder, which predicts; a prediction is scored on the processor")
    if truth is None:
        raise UserError("a prediction needs the dataset with the true u: --truth FILE")
    if run is not None or part:
        if no_t0 or floors:
            raise UserError(
                "--no-t0 and --floors are for a prediction of the whole file; leave them out, or --run and --part"
            )
        _of_predicted_part(prediction, truth, open_run(run) if run else None, part, rows, chosen, as_json)
        return
    _of_prediction(prediction, truth, rows, chosen, no_t0, floors, as_json)


# --- a prediction -------------------------------------------------------------------------------------------------
def _of_prediction(
    prediction: Path, truth: Path, rows: str, metrics: str | list[str], no_t0: bool, floors: bool, js: bool
) -> None:
    """Print the scores of a predicted u, with reference values if ``floors``."""
    from spdebench.data import open_dataset
    from spdebench.data.predictions import ensembles, parse_rows, read_prediction
    from spdebench.metrics import evaluate as score
    from spdebench.metrics import floors as marks

    dataset = open_dataset(truth)
    predicted, true = read_prediction(prediction, dataset, rows, has_t0=not no_t0)
    if predicted.ndim == true.ndim + 1:
        raise UserError(
            f"{prediction} has the shape {tuple(predicted.shape)}, members of a law (N m T X..); they are scored for a "
            f"part of the data: --part test, or --run RUN"
        )
    if predicted.ndim == true.ndim and len(predicted) != len(true):
        raise UserError(
            f"{prediction} has {len(predicted)} samples and {truth} {len(true)}; say which were predicted: the "
            f"test part of sb.Task(FILE) (--part test), samples that a run has predicted (--run RUN), or rows "
            f"(--rows START:STOP)"
        )
    times = dataset.times[1:] if no_t0 else dataset.times
    scores = score(predicted, true, dataset.grid, metrics=metrics, has_t0=not no_t0, times=times)
    table = None
    if floors:
        independent, converged = ensembles(dataset, rows, has_t0=not no_t0)
        table = marks(
            true,
            dataset.grid,
            independent=independent,
            converged=converged,
            metrics=metrics,
            has_t0=not no_t0,
            times=times,
        ).rows()
    start, stop = parse_rows(rows, len(dataset))
    what = {"prediction": str(prediction), "part": f"rows {start}:{stop}", "n": stop - start}
    _print(what, f"rows {start}:{stop} of {truth}", _rows(scores), scores.skipped, scores.remarks(), js, table)


def _of_predicted_part(
    file: Path, truth: Path, run: Run | None, name: str, rows: str, metrics: str | list[str], js: bool
) -> None:
    """Print the scores of a prediction for a part of a dataset: that of a run, or of the default task without a run."""
    from spdebench.data import open_dataset
    from spdebench.data.predictions import parse_rows, read_array
    from spdebench.metrics import evaluate as score
    from spdebench.tasks import Part, Task
    from spdebench.tasks.split import PARTS
    from spdebench.training.held_out import describe, run_part
    from spdebench.training.members import SEEN_NOISE, score_law

    dataset = open_dataset(truth)
    if file.suffix == ".parquet":
        raise UserError("--run and --part are for a .npy file, as 'spdebench predict' writes it, not for a dataset")
    if run is None:
        if name not in PARTS:
            raise UserError(
                f"--part {name} needs the run that made the prediction (--run RUN); without it: {', '.join(PARTS)}"
            )
        if rows:
            raise UserError("give --part or --rows, not both; with --run both may be given")
        part: Part = getattr(Task(dataset), name)
        said = f"{name} part of the default split, {len(part)} of {len(dataset)} samples"
    else:
        part = run_part(run, dataset, name, parse_rows(rows, len(dataset)) if rows else None)
        said = describe(part)
    array = read_array(file, 16 * part.u.numel())
    if array.ndim == 3 + part.grid.dim:
        seen = not dataset.imported and dataset.spec.seen is not None  # then members of the true law may be stored
        law = score_law(part.showing(SEEN_NOISE) if seen else part, array)
        assert law is not None
        scores = law if isinstance(metrics, str) else replace(law, scores={name: law[name] for name in metrics})
    else:
        scores = score(array, part.u, part.grid, metrics=metrics, times=part.times)
    what = {"prediction": str(file), "run": run and run.name, "part": part.name, "n": len(part)}
    _print(what, said, _rows(scores), scores.skipped, scores.remarks(), js)


# --- a run --------------------------------------------------------------------------------------------------------
def _of_run(
    run: Run,
    truth: Path | None,
    name: str,
    metrics: str | list[str],
    label: str,
    device: str,
    js: bool,
) -> None:
    """Print the scores of a run on its own test part, or on a part of another dataset, which its record then has."""
    from spdebench.data import open_dataset
    from spdebench.metrics import LAW_METRICS
    from spdebench.metrics import evaluate as score
    from spdebench.metrics.evaluate import DEFAULT
    from spdebench.metrics.scores import bias_note
    from spdebench.tasks.split import LEAST_SCORED
    from spdebench.training import score_on
    from spdebench.training.held_out import describe, own_test_part, run_part
    from spdebench.training.scoring import check_part, predict_part, score_part

    dataset = open_dataset(truth) if truth else None
    own = dataset is None or ((dataset.identity,) == run.spec.datasets and name in ("", "test") and not label)
    known, given, group = run.scores, label, isinstance(metrics, str)
    skipped = known.skipped if own and group else {}
    if own:
        part, text = None, f"test part, {known.counts['samples']} samples, which the run never saw"
        found = {row["metric"]: row for row in _rows(known)}
    else:
        assert dataset is not None and truth is not None
        part = run_part(run, dataset, name)
        stem = truth.stem if name in ("", "test") else f"{truth.stem}-{name}"
        label, text, found = plain_name(label or stem, "--label"), describe(part), {}
        if len(part) < LEAST_SCORED:
            raise UserError(
                f"{truth}: {len(part)} samples of part '{part.name}'; at least {LEAST_SCORED} are needed to score"
            )
    kept = part is not None and (bool(given) or part.name not in ("train", "val"))  # in the record of the run
    laws = run.task_setting.seen is not None and (metrics == "default" or any(m in LAW_METRICS for m in metrics))
    if part is not None and not kept and laws:
        check_part(run, part)
        tested = score_part(run.model.to(device), part).scores
        found, skipped = {row["metric"]: row for row in _rows(tested)}, tested.skipped if group else {}
    names = tuple(found) or (DEFAULT if kept else ())
    wanted = names or DEFAULT if metrics == "default" else _labels(metrics)
    of_law = [m for m in wanted if m in LAW_METRICS]
    if missing := [m for m in wanted if m not in names and m not in skipped and m not in of_law]:
        used = part or own_test_part(run, truth, f"{run.name} has no stored score '{missing[0]}'; computing it")
        prediction: Any = run.predictions if part is None else None
        if prediction is None:
            check_part(run, used)
            prediction = predict_part(run.model.to(device), used)
        fresh = score(prediction, used.u, used.grid, metrics=metrics if group else missing, times=used.times)
        found, skipped = {**{row["metric"]: row for row in _rows(fresh)}, **found}, fresh.skipped
    if part is not None and kept:
        entry = score_on(run, part, label, device=device)
        found |= {m: {"metric": m, **asdict(value)} for m, value in entry.scores.items()}
        if metrics == "default":
            wanted = (*wanted, *(m for m in entry.scores if m in LAW_METRICS))
    for name in of_law:
        if name not in found and name not in skipped:
            reason = (
                "a law is scored on a task with seen=K, see docs/law.md"
                if run.task_setting.seen is None
                else "it needs members of the true law for these samples, see --members of 'spdebench generate'"
            )
            reason = known.skipped.get(name, reason)
            raise UserError(f"{run.name} has no score '{name}': {reason}")
    what = {"run": run.name, "part": part.name if part else "test", "n": len(part or range(known.counts["samples"]))}
    shown = [found[m] for m in wanted if m in found]
    _print(what, text, shown, skipped, bias_note(shown), js)
    shifts = [each for each in run.record.shifts if each != label]
    if shifts and not js:
        typer.echo(one_line(f"also scored on: {', '.join(shifts)} (in {run.file('record.json')})"))


def _labels(metrics: str | list[str]) -> tuple[str, ...]:
    """The names of the metrics with their options, in the order asked for; those of a law are taken as they are."""
    from spdebench.metrics import LAW_METRICS
    from spdebench.metrics.evaluate import choose

    if isinstance(metrics, str) or not metrics:
        return tuple(m.label for m in choose(metrics)[0])
    return tuple(m if m in LAW_METRICS else choose([m])[0][0].label for m in metrics)


# --- output -------------------------------------------------------------------------------------------------------
def _rows(scores: Scores) -> list[dict[str, Any]]:
    return [{key: row[key] for key in ("metric", "value", "low", "high")} for row in scores.rows()]


def _print(
    what: Mapping[str, Any],
    text: str,
    rows: Sequence[dict[str, Any]],
    skipped: Mapping[str, str],
    remarks: Sequence[str],
    as_json: bool,
    floors: Sequence[dict[str, Any]] | None = None,
) -> None:
    """The one layout of scores: which samples, one line per metric, metrics that do not apply, reference values."""
    if as_json:
        print_json({**what, "scores": rows, "skipped": skipped, **({"floors": floors} if floors else {})})
        return
    typer.echo(one_line(text))
    print_table(rows)
    for line in remarks:
        typer.echo(line)
    for name, reason in skipped.items():
        typer.echo(one_line(f"not computed: {name} {reason}"))
    if floors:
        typer.echo("")
        print_table(floors)
