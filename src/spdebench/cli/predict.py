"""``spdebench predict``: the predictions of a trained model for a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spdebench.cli.output import ChosenPart, Device, Json, in_a_folder, print_json, size
from spdebench.errors import UserError
from spdebench.files import replacing
from spdebench.registry import command


def predict(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    data: Annotated[Path, typer.Argument(help="A dataset with initial data and noise.")],
    out: Annotated[Path, typer.Option(callback=in_a_folder, help="The file for u, .npy (N T X..).")] = Path(
        "prediction.npy"
    ),
    part: ChosenPart = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it is there already.")] = False,
    rows: Annotated[str, typer.Option(help="Only samples of the part in these rows of the file, START:STOP.")] = "",
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Predict u for the initial data and the noise of a dataset; by default for samples that the run never saw."""
    import numpy as np

    from spdebench.data import open_dataset
    from spdebench.data.generate import check_device
    from spdebench.data.predictions import parse_rows
    from spdebench.training import open_run
    from spdebench.training.scoring import check_part, predict_part
    from spdebench.training.unseen import describe, run_part

    check_device(device)
    if out.suffix != ".npy":
        raise UserError(f"--out is a .npy file, got {out.name}")
    if out.exists() and not overwrite:
        raise UserError(f"{out} is there already; choose another --out, or replace it with --overwrite")
    opened, dataset = open_run(run), open_dataset(data)
    chosen = run_part(opened, dataset, part, parse_rows(rows, len(dataset)) if rows else None)
    check_part(opened, chosen)
    prediction = predict_part(opened.model.to(device), chosen, progress=None).numpy()
    with replacing(out) as temporary, temporary.open("wb") as file:
        np.save(file, prediction)
    if as_json:
        print_json({"file": str(out), "shape": list(prediction.shape), "part": chosen.name})
        return
    shape = " x ".join(map(str, prediction.shape))
    typer.echo(f"{out} ({shape}, {size(out.stat().st_size)}): {describe(chosen)}")
    again = f" --part {chosen.name}" + (f" --rows {rows}" if rows else "")
    typer.echo(f"next: {command(f'evaluate {out} --truth {data} --run {run}{again}')}")
