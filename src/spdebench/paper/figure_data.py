"""Computes the data of a record that figures of the paper need in addition to scores (`records.FigureData`).

  moments   1-D: mean and variance over the test part at the frames T/2 and T, predicted and true
  log       training and validation loss by epoch, thinned
  fields    the first sample of the test part as predicted at five frames, on the grids of the data and of the solver

Only runs of cells that ask for it (`Want.figure_data`) have it, so that records stay small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdebench.errors import UserError
from spdebench.paper.shown_sample import shown_grids, shown_sample
from spdebench.records import FigureData
from spdebench.records.fields import FieldData, PackedFields
from spdebench.records.record import LossLog, MomentCurves, MomentData
from spdebench.tasks import Part
from spdebench.training import Run
from spdebench.training.folder import locked, write_json
from spdebench.training.scoring import predict_part, rounded

POINTS = 128  # the most points of a curve over space
EPOCHS = 60  # the most lines of a log

ReadTestPart = Callable[[], Part]
"""Reads the test part of a run; called only where it is needed."""


def moments(run: Run, test: ReadTestPart) -> MomentData:
    """Mean and variance (over samples, divisor N - 1) at frames T/2 and T, on at most 128 points, four digits."""
    part = test()
    if part.grid.dim != 1:
        raise UserError(f"{run.name}: moments can be recorded only for 1-D runs, this run is {part.grid.dim}-D")
    kept = run.predictions
    predicted = predict_part(run.model.cpu(), part).numpy() if kept is None else np.asarray(kept)
    truth = part.u.numpy()
    last = len(part.times) - 1
    frames = (last // 2, last)
    step = -(-truth.shape[-1] // POINTS)
    return MomentData(
        frames=frames,
        times=tuple(rounded(part.times[k]) for k in frames),
        start=part.grid.lower[0],
        step=step * part.grid.spacing[0],
        samples=len(part),
        predicted=_curves(predicted[:, list(frames), ::step]),
        true=_curves(truth[:, list(frames), ::step]),
    )


def _curves(u: NDArray[np.floating[Any]]) -> MomentCurves:
    """Mean and variance over samples of u (N F X), one curve per frame."""
    values = u.astype(np.float64)
    mean, variance = (
        tuple(tuple(rounded(x) for x in line) for line in lines.tolist())
        for lines in (values.mean(0), values.var(0, ddof=1))
    )
    return MomentCurves(mean, variance)


def log(run: Run, test: ReadTestPart) -> LossLog:
    """Training and validation loss of at most 60 epochs, evenly spread, including the first, the last and the best.

    The validation loss is the relative L2 error for every training loss.
    """
    lines = run.log
    chosen = {round(k) for k in np.linspace(0, len(lines) - 1, min(len(lines), EPOCHS - 1))} if lines else set()
    best = next((k for k, line in enumerate(lines) if line["epoch"] == run.record.best_epoch), None)
    shown = [lines[k] for k in sorted(chosen | ({best} if best is not None else set()))]
    train, val = (tuple(rounded(line[key]) for line in shown) for key in ("train", "val"))
    return LossLog(tuple(int(line["epoch"]) for line in shown), train, val)


def fields(run: Run, test: ReadTestPart) -> FieldData:
    """The first sample of the test part as predicted at five frames, on each grid on which a figure shows it."""
    samples = {grid: shown_sample(run.spec, grid) for grid in shown_grids(run.spec)}
    first = next(iter(samples.values()))
    grids = {
        grid: PackedFields.of(run.predict(each.u0, each.dw, equation=each.equation)[0, list(each.frames)])
        for grid, each in samples.items()
    }
    return FieldData(first.row, first.frames, first.times, grids)


@dataclass(frozen=True)
class FigureDataKind:
    """The function that computes one kind of data from a finished run, and whether for every seed or only the first."""

    make: Callable[[Run, ReadTestPart], Any]
    every_seed: bool


KINDS: Mapping[str, FigureDataKind] = {
    "moments": FigureDataKind(moments, False),
    "log": FigureDataKind(log, True),
    "fields": FigureDataKind(fields, False),
}
"""By the names of the fields of `records.FigureData`."""


def kinds_of_run(names: Sequence[str], seed_number: int) -> list[str]:
    """The kinds that are recorded for the run at this place among the seeds of a cell."""
    return [name for name in names if KINDS[name].every_seed or seed_number == 0]


def add_figure_data(run: Run, names: Sequence[str], test: ReadTestPart) -> None:
    """Add figure data to the record in a finished run's folder; existing data stay as they are."""
    made = {name: KINDS[name].make(run, test) for name in names if name not in run.record.figure_data.names}
    if made:
        with locked(Path(run.path)):
            record = run.record
            merged = record.figure_data.filled_from(FigureData(**made))
            write_json(run.file("record.json"), replace(record, figure_data=merged).to_dict())
