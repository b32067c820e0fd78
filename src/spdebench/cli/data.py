"""``spdebench data``: look at, check, describe, import, export, fetch and upload dataset files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from spdebench import data as datasets
from spdebench.cli.output import Device, Json, print_json, print_table, size
from spdebench.data import hub
from spdebench.data.card import card_facts, render_card
from spdebench.data.published import export_published, import_published
from spdebench.errors import UserError
from spdebench.files import write_text
from spdebench.tasks import TASK_TEXT

app = typer.Typer(
    help="Look at, check, describe, import, export, fetch and upload dataset files.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Repo = Annotated[str, typer.Option(envvar="SPDEBENCH_REPO", help="Dataset repository on the hub, OWNER/NAME.")]
Revision = Annotated[str, typer.Option(help="Branch, tag or commit of the repository.")]
File = Annotated[Path, typer.Argument(help="A native dataset file.")]


@app.command()
def info(file: File, as_json: Json = False) -> None:
    """Describe a file; only its metadata are read."""
    ds = datasets.open_dataset(file)
    facts = {
        "file": str(file),
        "bytes": file.stat().st_size,
        "n": len(ds),
        "columns": {k: list(v) for k, v in ds.shapes.items()},
        "identity": ds.identity,
        "made": ds.made,
        "chunks": len(ds.chunk_digests),
    }
    if as_json:
        print_json(facts)
        return
    typer.echo(f"{file} ({size(file.stat().st_size)}), {len(ds)} samples")
    if ds.imported:
        typer.echo(f"imported: {ds.identity['published']}")
    else:
        e = ds.equation
        typer.echo(f"{e.title}: {e.formula}")
        typer.echo(f"edition {e.edition}, scheme {e.scheme}, seed {ds.spec.seed}, task {TASK_TEXT[e.task]}")
        print_table([{"field": k, "value": v} for k, v in ds.identity["fields"].items()])
    print_table([{"column": k, "shape of a row": "x".join(map(str, v))} for k, v in ds.shapes.items()])


@app.command()
def verify(
    file: File,
    everything: Annotated[
        bool, typer.Option("--all", help="Solve every chunk again, not the first and last only.")
    ] = False,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Compare all checksums, then solve samples again from the seed and compare them with the file."""
    torch.set_num_threads(1)
    ds = datasets.open_dataset(file)
    result = datasets.verify(ds, everything=everything, device=device)
    if as_json:
        print_json({**vars(result), "good": result.good})
    else:
        typer.echo(f"{result.chunks} checksums match")
        if result.solved == 0:
            typer.echo("this file was imported and has no seed, so no sample was solved again")
        elif result.identical == result.solved:
            typer.echo(f"{result.solved} samples solved again from seed {ds.spec.seed}: the same bits")
        else:
            make = "the same" if result.same_make else "other"
            typer.echo(
                f"{result.solved} samples solved again: {result.identical} to the bit, largest difference "
                f"{result.largest:.1e} of max|u| ({make} versions or device than made the file)"
            )
    if not result.good:
        raise typer.Exit(1)


@app.command()
def card(
    file: File,
    out: Annotated[Path | None, typer.Option(help="Write the card there instead of printing it.")] = None,
    samples: Annotated[
        int, typer.Option(help="Samples that are solved more finely to measure the discretisation error.")
    ] = 16,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Print the dataset card: what the data are, and how far they are from finer solutions."""
    if samples < 2:
        raise UserError(f"samples must be at least 2 for a standard error, got {samples}")
    torch.set_num_threads(1)
    facts = card_facts(datasets.open_dataset(file), samples, device)
    if as_json:
        print_json(facts)
    elif out:
        write_text(out, render_card(facts))
        typer.echo(f"{out}")
    else:
        typer.echo(render_card(facts))


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(help="A file of the authors' published flat layout.")],
    out: Annotated[Path, typer.Option(help="Folder for the native file.")] = Path("data"),
    variant: Annotated[str, typer.Option(help="auto, 1d, kdv, phi42 or ns.")] = "auto",
) -> None:
    """Convert a published flat Parquet file into a native one."""
    path = import_published(source, out, variant=variant)
    typer.echo(f"{path} ({size(path.stat().st_size)})\nnext: spdebench data info {path}")


@app.command()
def export(
    file: File,
    out: Annotated[Path, typer.Option(help="Folder for the flat file.")] = Path("data"),
    name: Annotated[str | None, typer.Option(help="File name instead of {SPDE}-{task}-{J}-{n}.parquet.")] = None,
) -> None:
    """Write a dataset in the authors' published flat layout."""
    path = export_published(datasets.open_dataset(file), out, name=name)
    typer.echo(f"{path} ({size(path.stat().st_size)})")


@app.command()
def get(
    name: Annotated[str, typer.Argument(help="A file of the repository, with or without .parquet.")],
    repo: Repo = "",
    revision: Revision = "main",
    out: Annotated[Path, typer.Option(help="Folder for the file.")] = Path("data"),
) -> None:
    """Download a file from the hub and check it. Typed again, the command continues. Needs the extra hub."""
    path = hub.get(name, hub.Place(repo, revision), out)
    typer.echo(f"{path} ({size(path.stat().st_size)}), checksum right")
    native = hub.is_native(path)
    typer.echo(f"next: spdebench data {'info' if native else 'import'} {path}")


@app.command()
def push(
    file: File,
    repo: Repo = "",
    revision: Revision = "main",
    private: Annotated[
        bool, typer.Option("--private", help="If the repository does not exist yet, make it private.")
    ] = False,
    samples: Annotated[int, typer.Option(help="Samples that are solved more finely if a card is to be made.")] = 16,
) -> None:
    """Upload a dataset with its card to the hub, with the token in HF_TOKEN. Needs the extra hub."""
    torch.set_num_threads(1)
    typer.echo(hub.push(file, hub.Place(repo, revision), private=private, samples=samples))
