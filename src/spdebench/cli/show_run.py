"""``spdebench show RUN``: task, configuration and errors of a finished run, and the coefficients of a run of `step`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from spdebench.cli.output import print_json, print_table
from spdebench.display import cell
from spdebench.errors import UserError
from spdebench.metrics import LAW_METRICS
from spdebench.models.step import StepModel
from spdebench.models.step.report import residual_table, shifts_in_words, table
from spdebench.records.summary import rough
from spdebench.registry import command
from spdebench.report.figures.coefficients import plot_coefficients
from spdebench.report.style import save
from spdebench.training import open_run
from spdebench.training.overrides import as_arguments
from spdebench.training.train_command import train_command


def show_run(path: str, as_json: bool, picture: Path | None) -> None:
    """Print the run's task, configuration and errors; for `step` also its plan and its coefficients, or draw them."""
    run = open_run(path)
    record = run.record
    again = train_command(record)
    facts: dict[str, Any] = {
        "run": run.name,
        "model": run.spec.model,
        "config": run.spec.config,
        "task": run.spec.task,
        "val": record.val,
        "rel_l2": record.value("rel_l2"),
        **{name: record.value(name) for name in LAW_METRICS if name in record.scores},
        "parameters": record.real_parameters,
        "training": f"{rough(record.training_seconds)} s" if record.training_seconds else None,
        "again": again and command(again.removeprefix("spdebench ")),
    }
    model = run.model
    rows, residual = [], []
    if isinstance(model, StepModel):
        found = model.description
        facts |= {"parameters": 2 * model.weights.numel()}  # complex coefficients
        facts |= {"plan": model.plan.label, "notes": found["notes"], "tried": found["tried"]}
        if model.plan.velocity:
            facts["frame"] = [f"moves by {shift}" for shift in shifts_in_words(model.plan.velocity)]
        rows = table(model)
        if model.draws_members:
            facts |= {"residual": model.residual().kind.label, "laws": found["laws"]}
            residual = residual_table(model)
        if picture is not None:
            save(plot_coefficients(model), picture)
    elif picture is not None:
        raise UserError(f"--out draws the coefficients of a run of 'step'; {run.name} is one of '{run.spec.model}'")
    if as_json:
        print_json(facts | {"coefficients": rows} | ({"deviations": residual} if residual else {}))
        return
    width = max(8, *(len(key) for key in facts))
    for key, value in facts.items():
        if value is None:
            continue
        if key in ("tried", "laws"):
            lines = f"\n  {'':<{width}} ".join(f"{error:.3g}  {label}" for label, error in value)
            typer.echo(f"  {key:<{width}} {lines}")
        elif isinstance(value, list):
            if value:
                lines = f"\n  {'':<{width}} ".join(value)
                typer.echo(f"  {key:<{width}} {lines}")
        else:
            words = as_arguments(value) if isinstance(value, dict) else value
            typer.echo(f"  {key:<{width}} {cell(words)}")
    if rows:
        typer.echo(
            "\ncoefficients c_j(k) of the first stage, 95 % intervals over samples, and the values of the solver"
        )
        print_table(rows)
    if residual:
        typer.echo(
            "\nstandard deviation of the residual in mode k, and of the unseen noise after one interval (solver)"
        )
        print_table(residual)
