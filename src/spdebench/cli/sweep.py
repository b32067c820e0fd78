"""``spdebench sweep``: search hyper-parameters on validation."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from spdebench import spec
from spdebench.cli.output import Device, Json, print_json, print_table
from spdebench.cli.train import Cache, Data, Fields, Inputs, Mix, Model, Out, make_task, one_dataset
from spdebench.errors import UserError
from spdebench.progress import Progress
from spdebench.registry import command

if TYPE_CHECKING:
    from spdebench.training.sweep import Trial


def sweep(
    model: Model,
    data: Data,
    overrides: Fields = None,
    inputs: Inputs = "",
    mix: Mix = None,
    out: Out = Path("runs"),
    device: Device = "cpu",
    cache: Cache = None,
    as_json: Json = False,
) -> None:
    """Train every combination of key=a,b,c.

    The runs are sorted by validation error; the test part is never read.
    """
    from spdebench.training.overrides import alternatives, as_arguments, sort_overrides
    from spdebench.training.sweep import sweep as search

    data, words = one_dataset(data, overrides)
    choices = alternatives(model, spec.parse_overrides(words))
    fixed = {key: values[0] for key, values in choices.items() if len(values) == 1}
    open_ = {key: values for key, values in choices.items() if len(values) > 1}
    if not open_:
        raise UserError("nothing to search: give some key several values, such as learning_rate=1e-3,3e-3,1e-2")
    request = sort_overrides(model, fixed)
    task = make_task(data, inputs, mix, request)
    searched = {key: [value] for key, value in fixed.items() if key not in request.task} | open_

    with Progress(math.prod(map(len, open_.values())), "combinations") as bar:

        def report(number: int, total: int, values: dict[str, Any]) -> None:
            bar.advance(number - 1 - bar.done)  # it is called before each trial
            if not as_json:
                typer.echo(f"{number}/{total}  {as_arguments({key: values[key] for key in open_})}")

        trials = search(model, task, searched, out=out, device=device, report=report, cache=cache)
    rows = [_row(trial, list(open_)) for trial in trials]
    print_json(rows) if as_json else print_table(rows)
    best = trials[0]
    if best.val is None:
        raise UserError("every combination diverged; try a smaller learning_rate")
    if as_json:
        return
    given = as_arguments({**fixed, **{key: best.values[key] for key in open_}})
    more = f" --inputs {inputs}" * bool(inputs) + "".join(f" --mix {shlex.quote(str(path))}" for path in mix or [])
    typer.echo(f"next: {command(f'train {model}', data, given + more, '--out', out)}")


def _row(trial: Trial, keys: list[str]) -> dict[str, Any]:
    """A row of the printed table: the values tried, the validation error, the best epoch and the run."""
    best = None if trial.run is None else trial.run.best["best_epoch"]
    name = trial.note if trial.run is None else trial.run.name
    return {**{key: trial.values[key] for key in keys}, "val": trial.val, "epoch": best, "run": name}
