"""The verbs of ``spdebench bench``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from spdebench import spec
from spdebench.cli.output import Device, Json, SpecFields, check_sample_count, print_json, print_table
from spdebench.equations import EQUATIONS
from spdebench.errors import UserError, unknown
from spdebench.models import MODELS
from speed.data import bench_equation, standard_cases
from speed.kernels import table as kernels_table
from speed.metrics import bench as bench_metrics
from speed.models.measure import measure
from speed.train import bench as bench_training
from speed.train import geometric_mean

app = typer.Typer(
    help="Measure speed, mostly as a ratio of two times from the same run.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.command()
def data(
    equation: Annotated[str, typer.Argument(help="One equation instead of the standard cases.")] = "",
    overrides: SpecFields = None,
    only: Annotated[str, typer.Option(help="One standard case, such as 'phi41' or 'phi41 dirichlet'.")] = "",
    n: Annotated[
        int | None,
        typer.Option(
            "-n", callback=check_sample_count, help="Samples of each case; by default enough for a steady rate."
        ),
    ] = None,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Time of the solvers, next to a lower bound.

    ms per sample with one thread. The lower bound (floor) is the time to draw as many normal random numbers and to
    compute the same transforms.
    """
    torch.set_num_threads(1)
    if equation:
        cases = {
            " ".join([equation, *(overrides or [])]): spec.build(
                EQUATIONS[equation], spec.parse_overrides(overrides or []), equation
            )
        }
    else:
        cases = dict(standard_cases())
    if only and only not in cases:
        raise unknown("case", only, cases)
    rows = []
    for label, one in cases.items():
        if only in ("", label):
            t = bench_equation(one, n or 0, device, label)
            rows.append(
                {
                    "case": label,
                    "n": t.samples,
                    "ms/sample": t.solver,
                    "floor": t.floor,
                    "normals": t.normals,
                    "transforms": t.transforms,
                    "ratio": t.ratio,
                    "normals/s": t.normals_per_second,
                }
            )
    print_json(rows) if as_json else print_table(rows)


@app.command()
def metrics(as_json: Json = False) -> None:
    """Time of the paper's metrics, next to plain loops.

    ms with one thread.
    """
    torch.set_num_threads(1)
    rows = bench_metrics()
    print_json(rows) if as_json else print_table(rows)


@app.command()
def models(
    only: Annotated[str, typer.Option(help="One case, such as 'nspde'.")] = "",
    as_json: Json = False,
) -> None:
    """Time of a training step of models, next to plain PyTorch code.

    Batch 20, 128 points, 51 frames, one thread. The cases step-phi41 and step-phi42 compare a whole fit of the model
    step with the time of the solver; step-phi42 takes minutes and two threads.
    """
    rows = measure(only)
    print_json(rows) if as_json else print_table(rows)


@app.command()
def kernels(as_json: Json = False) -> None:
    """Which GPU kernels each model uses, and what they gain.

    The times (ms per epoch, with our kernels and with torch.compile and CUDA graphs) were measured on an H200.
    """
    rows = kernels_table()
    print_json(rows) if as_json else print_table(rows)


@app.command()
def train(
    names: Annotated[list[str] | None, typer.Argument(help="Models; by default all that are trained.")] = None,
    together: Annotated[int, typer.Option(help="Number of runs at the same time.")] = 8,
    samples: Annotated[int, typer.Option("-n", help="Samples; 1200 is the paper's.")] = 1200,
    compiled: Annotated[bool, typer.Option("--compile", help="Also time plain training with torch.compile.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the table to this CSV file.")] = None,
    device: Device = "cuda",
    as_json: Json = False,
) -> None:
    """Time of training on phi41: plain PyTorch and our loop.

    Milliseconds per epoch, for one run alone and for several runs at once.
    """
    if together < 1 or samples < 100:
        raise UserError(f"at least 1 run at once and 100 samples are needed, got {together} and {samples}")
    for name in names or []:
        MODELS[name]

    def show(row: dict[str, Any]) -> None:
        times = [f"{key} {row[key]:.1f}" for key in ("plain", "compiled", "alone") if key in row]
        typer.echo(f"{row['model']}: {', '.join(times)} ms per epoch", err=True)

    rows = bench_training(
        names or [], device=device, together=together, samples=samples, compiled=compiled, measured=show
    )
    if out:
        import pandas as pd  # slow to import

        pd.DataFrame(rows).to_csv(out, index=False, float_format="%.6g")
    if as_json:
        print_json(rows)
        return
    print_table(rows)
    gain = geometric_mean([row["gain"] for row in rows])
    typer.echo(f"gain over plain eager training, geometric mean over {len(rows)} models: {gain:.2f}")
