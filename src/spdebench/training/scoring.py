"""The end of a run: the test part is predicted once with the best weights, and scored."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from spdebench.data import Dataset, open_dataset
from spdebench.errors import UserError
from spdebench.files import replacing, write_text
from spdebench.metrics import Scores, evaluate
from spdebench.models import OperatorModel
from spdebench.models.base import evaluation_batch
from spdebench.progress import Progress
from spdebench.records import MetricValue, PartScores, Provenance, Record
from spdebench.records.codec import decode
from spdebench.records.record import TEST
from spdebench.tasks import Part
from spdebench.tasks.split import LEAST_SCORED
from spdebench.timing import median_time
from spdebench.training.folder import locked, write_json
from spdebench.training.members import SEEN_NOISE, TEST_MEMBERS, DrawnMembers, draws_for, score_law
from spdebench.training.run import Run

BATCH = 100  # the paper's batch for inference times


def predict_part(model: OperatorModel, part: Part, *, progress: bool | None = False) -> Tensor:
    """u (N T X..) for every sample of a part, on the host; where members of a law are drawn, their mean."""
    laws = DrawnMembers(model, part) if draws_for(model, part) else None
    size = evaluation_batch(part.shape)
    size = size if laws is None else max(1, size // TEST_MEMBERS)
    out = torch.empty((len(part), *part.shape)) if laws is None else laws.mean
    with Progress(len(part), "samples predicted", enabled=progress) as bar:
        for start in range(0, len(part), size):
            rows = slice(start, min(start + size, len(part)))
            if laws is None:
                out[rows] = model.predict(part.batch(rows)).cpu()
            else:
                laws.read(rows)
            bar.advance(len(out[rows]))
    return out


@dataclass(frozen=True)
class Tested:
    """The prediction of a part (N T X..), its scores, and the members that were drawn for its first inputs."""

    prediction: Tensor
    scores: Scores
    members: Tensor | None = None


def score_part(model: OperatorModel, part: Part) -> Tested:
    """The prediction of a part and its scores: the paper's metrics and ours.

    In a task that shows a part of the noise the scores of a law are added, and where members are drawn their mean is
    the prediction.
    """
    if not draws_for(model, part):
        prediction = predict_part(model, part)
        all_seen = not model.setting.partial and (model.setting.seen is not None or part.noise == SEEN_NOISE)
        law = score_law(part, prediction, model.device, one_answer=all_seen)
        return Tested(prediction, _joined(_point_scores(model, part, prediction), law))
    drawn = DrawnMembers(model, part)
    law = score_law(part, drawn, model.device)
    return Tested(drawn.mean, _joined(_point_scores(model, part, drawn.mean), law), drawn.shown)


def _joined(usual: Scores, law: Scores | None) -> Scores:
    """The usual scores and those of the law in one."""
    if law is None:
        return usual
    settings, skipped = {**usual.settings, "law": law.settings}, {**usual.skipped, **law.skipped}
    return replace(usual, scores={**usual.scores, **law.scores}, settings=settings, skipped=skipped)


def _point_scores(model: OperatorModel, part: Part, prediction: Tensor) -> Scores:
    """The scores of a prediction by the usual metrics, on the GPU if it fits there."""
    arrays = prediction, part.u
    if model.device.type == "cuda" and 6 * prediction.nbytes < torch.cuda.mem_get_info(model.device)[0]:
        arrays = prediction.to(model.device), part.u.to(model.device)
    return evaluate(*arrays, part.grid, metrics="default", times=part.times)


def inference_time(model: OperatorModel, part: Part) -> tuple[float, int]:
    """(milliseconds per sample, batch size) of features and network, inputs on the device; median after a warm-up.

    The batch has 100 samples, those of a smaller part repeated, or fewer if the memory does not hold so many.
    """
    if model.device.type == "cuda":
        try:
            return 1e3 * _seconds(model, part, BATCH) / BATCH, BATCH
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
    size = min(BATCH, evaluation_batch(part.shape))
    return 1e3 * _seconds(model, part, size) / size, size


def _seconds(model: OperatorModel, part: Part, size: int) -> float:
    """The median time of the prediction of one batch."""
    batch = part.batch(repeated_rows(len(part), size)).to(model.device)
    return median_time(lambda: model.predict(batch), 20, model.device, least=3)


def repeated_rows(count: int, size: int = BATCH) -> Tensor:
    """The rows of a batch of ``size`` samples for measuring time, from ``count`` samples: 0, 1, .. again and again."""
    return torch.arange(size) % count


def finish(run: Run, part: Part, device: str, *, keep_predictions: bool = True) -> None:
    """Test a trained run and write predictions, scores and, last, the record."""
    model = run.model.to(device)
    tested = score_part(model, part)
    scores = tested.scores
    ms, batch_size = inference_time(model, part)
    if keep_predictions:
        arrays = {"predictions.npy": tested.prediction, "members.npy": tested.members}
        for name, values in arrays.items():
            if values is not None:
                with replacing(run.file(name)) as temporary, temporary.open("wb") as file:
                    np.save(file, values.numpy())
    write_text(run.file("scores.json"), scores.to_json())
    best = run.best
    counts = model.counts()
    record = Record(
        digest=run.spec.digest,
        name=run.name,
        model=run.spec.model,
        config=run.spec.config,
        datasets=run.spec.datasets,
        task=run.spec.task,
        options=run.spec.options,
        initial=run.spec.initial,
        parameters=counts["parameters"],
        real_parameters=counts["real"],
        val=best["val"],
        best_epoch=best["best_epoch"],
        epochs=best["epochs"],
        scores=metric_values(scores),
        samples=sample_errors(scores),
        inference_ms=rounded(ms),
        inference_batch=batch_size,
        training_seconds=best["seconds"],
        peak_memory_mb=best["peak_memory_mb"],
        provenance=decode(Provenance, best["provenance"], "provenance"),
    )
    write_json(run.file("record.json"), record.to_dict())


def metric_values(scores: Scores) -> dict[str, MetricValue]:
    """Values with their intervals; NaN for a value that is not finite."""
    return {
        row["metric"]: MetricValue(
            row["value"] if math.isfinite(row["value"]) else math.nan, _finite(row["low"]), _finite(row["high"])
        )
        for row in scores.rows()
    }


def sample_errors(scores: Scores) -> dict[str, tuple[float, ...]]:
    """The relative L2 error of each sample, and its energy score where a law was scored."""
    kept = {name: scores[name].samples for name in ("rel_l2", "energy_score") if name in scores}
    return {name: () if values is None else tuple(rounded(x) for x in values) for name, values in kept.items()}


def _finite(value: float | None) -> float | None:
    """The value; None if it is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def rounded(value: float) -> float:
    """The value with four digits; NaN if it is not finite."""
    return float(f"{value:.4g}") if math.isfinite(value) else math.nan


# --- scores on other data than those of the training --------------------------------------------------------------
def part_for(
    run: Run, data: Dataset | str | os.PathLike[str], name: str = "test", rows: np.ndarray | None = None
) -> Part:
    """Rows of a dataset as inputs of a run: the part called ``name`` in the run's split, or the ``rows`` given.

    The test part has no sample whose noise the run was trained or validated on; the name ``all`` means every row.
    Frames are sub-sampled as in the run's task; points only if that gives the grid that the run was trained on.
    """
    dataset = data if isinstance(data, Dataset) else open_dataset(data)
    task, grid = run.spec.task_spec, run.task_setting.grid
    thinned = tuple(n // task.stride for n in dataset.grid.points)
    stride = task.stride if thinned == grid.points else 1
    if (len(dataset.times) - 1) % task.every:
        raise UserError(
            f"{dataset.path.name} has {len(dataset.times) - 1} intervals; the run takes every {task.every}th frame"
        )
    chosen = rows
    if chosen is None:
        parts = task.rows_in(dataset, run.spec.datasets).parts
        chosen = np.arange(len(dataset)) if name == "all" else parts[name]
    equations = () if dataset.imported else (dataset.equation,)
    if not equations and run.task_setting.equation:
        equations = (run.task_setting.equation,)
    noise = task.noise_column(dataset)
    return Part(name, [dataset], [chosen], every=task.every, stride=stride, equations=equations, noise=noise)


def check_part(run: Run, part: Part) -> None:
    """Raise a one-line error unless the run can predict the samples of the part; warn if its frames are further apart,
    or less far, than those of the training data, because no model takes this into account."""
    setting = run.task_setting
    fixed_horizon = not type(run.model).any_horizon
    if setting.partial and part.noise == SEEN_NOISE and part.datasets[0].spec.seen != setting.seen:
        raise UserError(
            f"{run.name} was trained with seen={setting.seen}; {part.datasets[0].path.name} shows the noise of "
            f"seen={part.datasets[0].spec.seen}"
        )
    if part.grid.dim != setting.dim or (fixed_horizon and len(part.times) != setting.frames):
        raise UserError(
            f"{run.name} predicts {setting.frames} frames in {setting.dim}-D; these data have {len(part.times)} frames "
            f"in {part.grid.dim}-D"
        )
    if part.grid.points != setting.grid.points and not type(run.model).any_grid:
        raise UserError(
            f"model '{run.spec.model}' works on the {setting.grid.points} points it was trained on, "
            f"these data have {part.grid.points}"
        )
    if not math.isclose(part.dt, setting.dt, rel_tol=1e-4):
        warnings.warn(
            f"the frames of {part.datasets[0].path.name} are {part.dt:.4g} apart, those that {run.name} was trained on "
            f"{setting.dt:.4g}; the model treats them alike",
            stacklevel=2,
        )


def score_on(run: Run, part: Part, label: str, *, device: str = "cpu") -> PartScores:
    """Score a finished run on another part, ``task.part("test", other)``, and add that to its record under ``label``.

    Scores that the record already has under this label for the same data are not computed again. Samples that the run
    was trained or validated on are refused, unless the part is called ``train`` or ``val``.
    """
    run.record  # noqa: B018  (refuses a run that is not finished)
    check_part(run, part)
    _check_unseen(run, part, label)
    if len(part) < LEAST_SCORED:
        raise UserError(f"{label}: {len(part)} samples; at least {LEAST_SCORED} are needed to score")
    datasets = tuple(d.identity for d in part.datasets)
    before = run.record.shifts.get(label)
    if before and (before.datasets, before.part, before.n) == (datasets, part.name, len(part)):
        return before
    scores = score_part(run.model.to(device), part).scores
    entry = PartScores(metric_values(scores), sample_errors(scores), datasets, part.name, len(part))
    with locked(Path(run.path)):
        record = replace(run.record, shifts={**run.record.shifts, label: entry})
        write_json(run.file("record.json"), record.to_dict())
    return entry


def add_metrics(run: Run, part: Part, names: Sequence[str], label: str = TEST, *, device: str = "cpu") -> None:
    """Score a finished run by further metrics on its test part, or on a part that it was scored on as ``label``.

    The values are added to its record; those that it has stay as they are.
    """
    missing = run.record.not_scored(names, label)
    if not missing:
        return
    kept = run.predictions if label == TEST else None
    prediction = predict_part(run.model.to(device), part) if kept is None else kept
    new = metric_values(evaluate(prediction, part.u, part.grid, metrics=missing, times=part.times))
    with locked(Path(run.path)):
        record = run.record
        if label == TEST:
            record = replace(record, scores={**new, **record.scores})
        else:
            shift = record.shifts[label].filled_from(PartScores(new))
            record = replace(record, shifts={**record.shifts, label: shift})
        write_json(run.file("record.json"), record.to_dict())


def _check_unseen(run: Run, part: Part, label: str) -> None:
    """Refuse samples whose noise the run was trained or validated on."""
    if part.name in ("train", "val"):
        return
    for dataset, rows in zip(part.datasets, part.rows, strict=True):
        seen = np.intersect1d(rows, run.spec.task_spec.rows_in(dataset, run.spec.datasets).seen)
        if len(seen):
            raise UserError(
                f"{label}: {run.name} was trained or validated on the noise of {len(seen)} of these {len(rows)} "
                f"samples of {dataset.path.name}; score it on part_for(run, file), or on a file with another seed"
            )
