"""``spdebench predict``: the predictions of a trained model for a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spdebench.cli.output import ChosenPart, Device, Json, check_file_option, print_json, size
from spdebench.errors import UserError
from spdebench.files import replacing
from spdebench.registry import command


def predict(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    data: Annotated[Path, typer.Argument(help="A dataset with initial data and noise.")],
    out: Annotated[
        Path,
        typer.Option(callback=check_file_option, help="The file for u, .npy (N T X..), or (N m T X..) with --members."),
    ] = Path("prediction.npy"),
    part: ChosenPart = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    rows: Annotated[
        str, typer.Option(help="Only those samples of the part that are in these rows of the file, START:STOP.")
    ] = "",
    members: Annotated[
        int,
        typer.Option(help="Draw this number of samples of the law of u for each input, if the run has learned a law."),
    ] = 0,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Predict u for the samples of a dataset.

    By default only samples that the run has not seen are predicted. A run that has learned a law predicts the mean
    of its members; with --members the members themselves are written.
    """
    import numpy as np

    from spdebench.data import open_dataset
    from spdebench.data.predictions import parse_rows
    from spdebench.training import open_run
    from spdebench.training.held_out import describe, run_part
    from spdebench.training.members import DrawnMembers, write_members
    from spdebench.training.scoring import check_part, predict_part

    if members < 0:
        raise UserError(f"--members must be at least 1, got {members}")
    if out.suffix != ".npy":
        raise UserError(f"--out is a .npy file, got {out.name}")
    if out.exists() and not overwrite:
        raise UserError(f"{out} already exists; choose another --out, or replace it with --overwrite")
    opened, dataset = open_run(run), open_dataset(data)
    chosen = run_part(opened, dataset, part, parse_rows(rows, len(dataset)) if rows else None)
    check_part(opened, chosen)
    found: tuple[int, ...]
    if members:
        opened.completion(None)
        drawn = DrawnMembers(opened.model.to(device), chosen, members)
        with replacing(out) as temporary:
            write_members(drawn, temporary)
        found = drawn.shape
    else:
        prediction = predict_part(opened.model.to(device), chosen, progress=None).numpy()
        with replacing(out) as temporary, temporary.open("wb") as file:
            np.save(file, prediction)
        found = prediction.shape
    if as_json:
        print_json({"file": str(out), "shape": list(found), "part": chosen.name})
        return
    shape = " x ".join(map(str, found))
    typer.echo(f"{out} ({shape}, {size(out.stat().st_size)}): {describe(chosen)}")
    again = f"--part {chosen.name}" + (f" --rows {rows}" if rows else "")
    typer.echo(f"next: {command('evaluate', out, '--truth', data, '--run', run, again)}")
