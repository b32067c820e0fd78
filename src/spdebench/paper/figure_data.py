"""What a record keeps of a run beside its scores, for a figure that asks for it: ``record["kept"][name]``.

  moments   1-D: mean and variance over the test part at the frames T/2 and T, predicted and true
  log       validation and training loss by epoch, thinned

Only runs of cells that ask (`Want.keeps`) have them, so that records stay small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdebench.errors import UserError
from spdebench.tasks import Part
from spdebench.training import Run
from spdebench.training.folder import locked, write_json
from spdebench.training.scoring import predict_part, rounded

POINTS = 128  # the most points of a curve over space
EPOCHS = 60  # the most lines of a log


def moments(run: Run, test: Callable[[], Part]) -> dict[str, Any]:
    """Mean and variance (over samples, divisor N - 1) at frames T/2 and T, on at most 128 points, four digits."""
    part = test()
    if part.grid.dim != 1:
        raise UserError(f"{run.name}: moments are kept of 1-D runs only, this is {part.grid.dim}-D")
    kept = run.predictions
    predicted = predict_part(run.model.cpu(), part).numpy() if kept is None else np.asarray(kept)
    truth = part.u.numpy()
    last = len(part.times) - 1
    frames = [last // 2, last]
    step = -(-truth.shape[-1] // POINTS)
    return {
        "frames": frames,
        "times": [rounded(part.times[k]) for k in frames],
        "start": part.grid.lower[0],
        "step": step * part.grid.spacing[0],
        "samples": len(part),
        "predicted": _curves(predicted[:, frames, ::step]),
        "true": _curves(truth[:, frames, ::step]),
    }


def _curves(u: NDArray[np.floating[Any]]) -> dict[str, list[list[float | None]]]:
    """u (N F X) -> mean and variance, a line a frame."""
    values = u.astype(np.float64)
    found = {"mean": values.mean(0), "variance": values.var(0, ddof=1)}
    return {name: [[rounded(x) for x in line] for line in lines.tolist()] for name, lines in found.items()}


def log(run: Run, test: Callable[[], Part]) -> dict[str, Any]:
    """epoch, train and val of at most 60 epochs, evenly spread; the first, the last and the best are among them.

    val is the relative L2 error whatever the loss is; train is the loss.
    """
    lines = run.log
    chosen = {round(k) for k in np.linspace(0, len(lines) - 1, min(len(lines), EPOCHS - 1))} if lines else set()
    best = next((k for k, line in enumerate(lines) if line["epoch"] == run.record["best_epoch"]), None)
    shown = [lines[k] for k in sorted(chosen | ({best} if best is not None else set()))]
    losses = {key: [rounded(line[key]) for line in shown] for key in ("train", "val")}
    return {"epoch": [int(line["epoch"]) for line in shown], **losses}


# --- reading what anyone may have written -------------------------------------------------------------------------
def _sound_moments(block: Any) -> bool:
    try:
        lines = [line for side, name in _SIDES for line in block[side][name]]
        numbers = [*block["frames"], *block["times"], block["start"], block["step"], block["samples"]]
        alike = all(len(block[s][n]) == len(block["frames"]) == len(block["times"]) for s, n in _SIDES)
        return alike and _numbers(numbers) and len({len(line) for line in lines}) == 1 and all(map(_numbers, lines))
    except (KeyError, TypeError):
        return False


_SIDES = [(side, name) for side in ("predicted", "true") for name in ("mean", "variance")]


def _sound_log(block: Any) -> bool:
    try:
        lines = [block[key] for key in ("epoch", "train", "val")]
        return len({len(line) for line in lines}) == 1 and all(map(_numbers, lines))
    except (KeyError, TypeError):
        return False


def _numbers(values: Any) -> bool:
    """A list of numbers; null stands for what is not finite."""
    return isinstance(values, list) and all(x is None or isinstance(x, int | float) for x in values)


@dataclass(frozen=True)
class Keep:
    """How a block is made of a finished run (and its test part, read if needed), whether of every seed, and whether
    something that was read is one."""

    make: Callable[[Run, Callable[[], Part]], Any]
    every_seed: bool
    sound: Callable[[Any], bool]


KEEPS: Mapping[str, Keep] = {
    "moments": Keep(moments, False, _sound_moments),
    "log": Keep(log, True, _sound_log),
}


def wanted(names: Sequence[str], place: int) -> list[str]:
    """The blocks that the run at this place among a cell's seeds is to have."""
    return [name for name in names if KEEPS[name].every_seed or place == 0]


def keep(run: Run, names: Sequence[str], test: Callable[[], Part]) -> None:
    """Add blocks to the record in a finished run's folder; those it has stay."""
    missing = [name for name in names if name not in run.record.get("kept", {})]
    made = {name: KEEPS[name].make(run, test) for name in missing}
    if made:
        with locked(Path(run.path)):
            record = run.record
            write_json(run.file("record.json"), record | {"kept": made | record.get("kept", {})})
