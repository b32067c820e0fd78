"""Pages of runs: scores with intervals, spec and provenance, and drawings as far as the run's folder has them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from spdebench import spec
from spdebench.data import Dataset
from spdebench.errors import UserError
from spdebench.files import MOST_LINES, read_text
from spdebench.records import Record
from spdebench.records.summary import MAIN
from spdebench.report import formatting
from spdebench.report.board.shown import ShownDataset, ShownRun
from spdebench.report.figures import plot_fan, plot_members, plot_ranks
from spdebench.report.run_laws import KEPT, laws_of, ranks_of
from spdebench.report.site import charts
from spdebench.report.site.content import Content
from spdebench.report.site.render import Drawing, Page, Templates, draw
from spdebench.tasks import TaskSpec
from spdebench.training import TrainOptions, open_run
from spdebench.training.train_command import names_of

DAMAGED = (UserError, KeyError, TypeError, ValueError, AttributeError)
"""The errors that a damaged file of a run may raise; its page then has fewer drawings."""


def run_pages(content: Content, templates: Templates) -> Iterator[Page]:
    """A page for each run."""
    tables = {digest: filled.table.name for filled in content.tables for e in filled.entries for digest in e.digests}
    for row in content.rows:
        for run in row.runs if row.kind != "submission" else []:
            table = tables.get(run.record.digest) if run.reference else None
            commands = [f"spdebench table {table} --only {run.record.model} --run"] if table else run.commands
            yield _run(content, templates, run, row.runs, commands)


def _run(
    content: Content, templates: Templates, run: ShownRun, siblings: Sequence[ShownRun], commands: Sequence[str]
) -> Page:
    """The page of one run."""
    record = run.record
    parts: list[dict[str, Any]] = [{"title": "Scores", "data": [], "scores": record.scores}]
    for label, scored in record.shifts.items():
        data = [ShownDataset(identity) for identity in scored.datasets]
        parts.append({"title": f"Shift: {formatting.text(label)}", "data": data, "scores": scored.scores})
    facts = [
        ("Result", "Scores and cost", _result(record)),
        ("Configuration", "Fields of the model", _lines(record.config)),
        ("Options", "Options of the training", _lines(names_of(TrainOptions, record.options))),
        ("Task", "Inputs, split and sub-sampling", _lines(record.task)),
        ("Provenance", "Where and with what it ran", _lines(asdict(record.provenance))),
    ]
    return templates.render(
        "run.html", f"runs/{run.key}.html", "Leaderboard", run.title, run=run, siblings=siblings, commands=commands,
        charts=_charts(content, run), facts=[entry for entry in facts if entry[2]],
        parts=[part for part in parts if part["scores"]],
    )  # fmt: skip


def _result(record: Record) -> dict[str, str]:
    """Validation loss, epochs, parameters, times and memory as text."""
    return {
        "best validation loss": formatting.number(record.val),
        "best epoch": formatting.number(record.best_epoch),
        "epochs": formatting.number(record.epochs),
        "parameters": formatting.number(record.parameters),
        "parameters, a complex one counted twice": formatting.number(record.real_parameters),
        "inference, ms per sample": formatting.number(record.inference_ms),
        "samples per batch of inference": formatting.number(record.inference_batch),
        "training": formatting.seconds(record.training_seconds),
        "peak memory, MB": formatting.number(record.peak_memory_mb),
    }


def _lines(values: Mapping[str, Any]) -> dict[str, str]:
    return {formatting.text(key): formatting.text(value) for key, value in formatting.flat(values).items()}


def _charts(content: Content, run: ShownRun) -> list[Drawing]:
    """Learning curve, error over time, one prediction and pictures of a law, if the run's folder has their data."""
    folder = content.folders.get(run.key)
    if folder is None:
        return []
    log, curve = _log(folder / "log.jsonl"), _curve(folder / "scores.json")
    out = []
    if log or curve:
        figure = charts.plot_training(log, run.record.best_epoch if log else None, curve, run.name)
        caption = " ".join(
            [*(["Training and validation loss."] * bool(log)), *(["Test error over time."] * bool(curve))]
        )
        out.append(draw(figure, "training", caption))
    sample = _sample(content, run, folder / "predictions.npy")
    if sample is not None:
        truth, predicted, file = sample
        end = float(file.times[-1])
        figure = charts.plot_prediction(truth, predicted, end, file.grid, "the first test sample")
        caption = "Truth and prediction on one colour scale, and their difference on one of its own."
        out.append(draw(figure, "prediction", caption))
    return [*out, *_law_charts(content, run, folder)]


def _law_charts(content: Content, run: ShownRun, folder: Path) -> Iterator[Drawing]:
    """Fan, members and ranks of a run that predicts a law, if its folder and that of its dataset have the data."""
    if not (folder / KEPT).is_file():
        return
    file = content.files.get(run.datasets[0].key) if run.datasets else None
    with suppress(*DAMAGED):  # the file of members is not there, or one of the files is damaged
        laws = None if file is None else laws_of(open_run(folder), file.path)
        if laws is not None:
            caption = "True members, predicted members and bands of these, at one point, for the first test inputs."
            yield draw(plot_fan(laws), "fan", caption)
            yield draw(plot_members(laws), "members", "True and predicted members at the last frame.")
    with suppress(*DAMAGED):
        yield draw(plot_ranks(ranks_of(open_run(folder))), "ranks", "Ranks of true values among predicted members.")


def _log(path: Path) -> list[dict[str, float]]:
    """The lines of a log, numbers only; a last line cut short is left out."""
    out = []
    try:
        for line in read_text(path, MOST_LINES).splitlines():
            found = formatting.mapping(spec.loads(line, allow_nan=True))
            entry = {key: formatting.real(value) for key, value in found.items()}
            finite = {key: value for key, value in entry.items() if value is not None and math.isfinite(value)}
            if "epoch" in finite:
                out.append(finite)
    except (OSError, ValueError):
        pass
    return out


def _curve(path: Path) -> list[float]:
    """The main score over time, from the run's whole scores."""
    try:
        found = formatting.mapping(spec.loads(read_text(path)))
    except (OSError, ValueError):
        return []
    score = formatting.mapping(formatting.mapping(found.get("scores")).get(MAIN))
    values = [formatting.real(value) for value in formatting.sequence(score.get("curve"))]
    return [math.nan if value is None or not math.isfinite(value) else value for value in values]


def _sample(content: Content, run: ShownRun, path: Path) -> tuple[np.ndarray, np.ndarray, Dataset] | None:
    """Truth and prediction of the first test sample and the dataset; None if one is missing or they do not match."""
    file = content.files.get(run.datasets[0].key) if run.datasets else None
    if file is None or not path.is_file():
        return None
    try:
        task = spec.build(TaskSpec, {key: value for key, value in run.record.task.items() if key != "equation"}, "task")
        row = int(task.rows(len(file))["test"][0])
        first = np.load(path, mmap_mode="r", allow_pickle=False)[0]
        if first.size > file.read("u", row, row + 1).size:
            return None
        predicted = np.array(first, dtype=np.float32)
    except Exception:  # a damaged header raises whatever its damage leads to
        return None
    steps = (slice(None, None, task.every), *(slice(None, None, task.stride),) * file.grid.dim)
    truth = file.read("u", row, row + 1)[0][steps]
    return (truth, predicted, file) if truth.shape == predicted.shape else None
