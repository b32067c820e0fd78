"""``spdebench data``: describe, verify, import, export, download and publish dataset files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spdebench.cli.output import Device, Json, check_file_option, check_folder_option, print_json, print_table, size
from spdebench.errors import Damaged, UserError, one_line
from spdebench.files import write_text
from spdebench.registry import changed_source, command

if TYPE_CHECKING:
    from spdebench import data as datasets
    from spdebench.data.verify import Verification


app = typer.Typer(
    help="Describe, verify, convert and publish datasets.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Repo = Annotated[str, typer.Option(envvar="SPDEBENCH_REPO", help="Dataset repository on the hub, OWNER/NAME.")]
Revision = Annotated[str, typer.Option(help="Branch, tag or commit of the repository.")]
File = Annotated[Path, typer.Argument(help="A native dataset file.")]
Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Native dataset files.")]


@app.command()
def info(file: File, as_json: Json = False) -> None:
    """Describe a dataset file. Only the metadata are read, and some members of a law if there are any."""
    from spdebench import data as datasets
    from spdebench.data.unseen_share import unseen_share
    from spdebench.report.formatting import flat
    from spdebench.tasks import TASK_TEXT

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
    share = unseen_share(ds)
    if as_json:
        print_json(facts if share is None else facts | {"unseen": vars(share)})
        return
    typer.echo(f"{file} ({size(file.stat().st_size)}), {f'{len(ds)} samples' if ds.imported else ds.spec.rows_text}")
    if ds.imported:
        found = ds.identity["published"]
        typer.echo(one_line(f"imported from {found.get('file')}; the equation is not known to models"))
        others = {key: value for key, value in flat(found).items() if key not in ("file", "sha256")}
        print_table([{"field": key, "value": value} for key, value in others.items()])
    else:
        e = ds.equation
        typer.echo(f"{e.title}: {e.formula}")
        typer.echo(f"edition {e.edition}, scheme {e.scheme}, seed {ds.spec.seed}, task {TASK_TEXT[e.task]}")
        print_table([{"field": k, "value": v} for k, v in ds.identity["fields"].items()])
    if share is not None:
        typer.echo(f"with seen={share.seen} a model does not see {share}")
    print_table([{"column": k, "shape of a row": "x".join(map(str, v))} for k, v in ds.shapes.items()])


@app.command()
def verify(
    files: Files,
    everything: Annotated[
        bool, typer.Option("--all", help="Solve every chunk again, not only a quarter of them (at least two).")
    ] = False,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Check datasets against their checksums and their seeds.

    All checksums are compared; then randomly chosen chunks are solved again from the seed and compared with the file.
    With the versions and the kind of device that made the file, the bits must be the same; with others, values may
    differ by 1e-6 of the largest value. The exit code is 1 if a file fails.
    """
    import torch

    from spdebench import data as datasets

    torch.set_num_threads(1)
    facts, failed = [], 0
    for file in files:
        try:
            ds = datasets.open_dataset(file)
            result = datasets.verify(ds, everything=everything, device=device)
        except UserError as error:  # the other files are verified all the same
            if len(files) == 1 and not isinstance(error, Damaged):
                raise
            typer.echo(f"error: {error}", err=True)
            failed = max(failed, 1 if isinstance(error, Damaged) else 2)
            continue
        failed = max(failed, int(not result.good))
        facts.append({"file": str(file), **vars(result), "coverage": result.coverage, "good": result.good})
        if not as_json:
            typer.echo("".join([f"{file}: "] * (len(files) > 1) + [_verification_text(ds, result)]))
    if as_json:
        print_json(facts if len(files) > 1 else facts[0] if facts else {})
    if failed:
        raise typer.Exit(failed)


def _verification_text(ds: datasets.Dataset, result: Verification) -> str:
    """The result of a verification in one line."""
    from spdebench.data.verify import TOLERANCE

    text = "1 checksum matches" if result.chunks == 1 else f"{result.chunks} checksums match"
    if result.non_finite:
        stated = f", {result.expected_non_finite} as the file states" if result.expected_non_finite else ""
        text += f"; {'' if result.good else 'DIFFERENT: '}{result.non_finite} samples are not finite{stated}"
    if result.solved == 0:
        return f"{text}; this file was imported and has no seed, so no sample was solved again"
    drawn = f" of {len(ds)}" if result.solved < len(ds) else ""
    text += f"; {result.solved}{drawn} samples solved again from seed {ds.spec.seed}: "
    if result.identical == result.solved:
        text += "the same bits"
    else:
        verdict = "" if result.good else "DIFFERENT: "
        allowed = (
            "none is allowed with the versions and the device that made the file"
            if result.same_versions
            else f"{TOLERANCE:g} is allowed with other versions or another processor than made the file"
        )
        text += f"{verdict}{result.identical} to the bit, largest difference {result.largest:.1e} ({allowed})"
        if changed := changed_source(ds.made.get("source"), type(ds.spec.equation)):
            text += f"; it was made with {changed}"
    if drawn:
        found = f"one wrong chunk would be found with probability {result.coverage:.0%}"
        text += f"; the solved chunks were chosen at random ({found}); --all solves every chunk"
    return text


@app.command()
def card(
    files: Files,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the card to this file instead of printing it; for several files, to this folder."),
    ] = None,
    samples: Annotated[
        int, typer.Option(help="Number of samples that are solved more accurately to measure the discretisation error.")
    ] = 16,
    device: Device = "cpu",
    as_json: Json = False,
) -> None:
    """Print the card of a dataset.

    A card has a description, reference errors, and the discretisation error of the data.
    """
    import torch

    from spdebench import data as datasets
    from spdebench.report.card import card_facts, render_card

    if samples < 2:
        raise UserError(f"samples must be at least 2 for a standard error, got {samples}")
    if len(files) == 1:
        check_file_option(out)
    torch.set_num_threads(1)
    opened = [datasets.open_dataset(file) for file in files]
    facts = [card_facts(each, samples, device) for each in opened]
    if as_json:
        print_json(facts if len(files) > 1 else facts[0])
        return
    for file, each in zip(files, facts, strict=True):
        if out is None:
            typer.echo(render_card(each))
            continue
        path = out / f"{file.stem}.md" if len(files) > 1 else out
        write_text(path, render_card(each))
        typer.echo(f"{path}")


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(help="A file of the authors' published flat layout.")],
    out: Annotated[Path, typer.Option(callback=check_folder_option, help="Folder for the native file.")] = Path("data"),
    variant: Annotated[str, typer.Option(help="auto, 1d, kdv, phi42 or ns.")] = "auto",
) -> None:
    """Convert a published flat Parquet file into a native one."""
    from spdebench.data.published import import_published

    path = import_published(source, out, variant=variant)
    typer.echo(f"{path} ({size(path.stat().st_size)})\nnext: {command('data info', path)}")


@app.command()
def export(
    file: File,
    out: Annotated[Path, typer.Option(callback=check_folder_option, help="Folder for the flat file.")] = Path("data"),
    name: Annotated[str | None, typer.Option(help="File name instead of {SPDE}-{task}-{J}-{n}.parquet.")] = None,
) -> None:
    """Write a dataset in the authors' published flat layout."""
    from spdebench import data as datasets
    from spdebench.data.published import export_published

    path = export_published(datasets.open_dataset(file), out, name=name)
    typer.echo(f"{path} ({size(path.stat().st_size)})")


@app.command()
def get(
    name: Annotated[str, typer.Argument(help="A file of the repository, with or without .parquet.")],
    repo: Repo = "",
    revision: Revision = "main",
    out: Annotated[Path, typer.Option(callback=check_folder_option, help="Folder for the file.")] = Path("data"),
) -> None:
    """Download a file from the hub and check it.

    The same command continues an interrupted download. The extra hub is needed.
    """
    from spdebench.data import hub

    path = hub.get(name, hub.Repository(repo, revision), out)
    typer.echo(f"{path} ({size(path.stat().st_size)}), checksum verified")
    verb = "info" if hub.is_native(path) else "import"
    typer.echo(f"next: {command(f'data {verb}', path)}")


@app.command()
def push(
    file: File,
    repo: Repo = "",
    out: Annotated[
        Path | None,
        typer.Option(help="Write the same files into this folder instead of uploading them; needs no network."),
    ] = None,
    revision: Revision = "main",
    licence: Annotated[
        str, typer.Option("--license", help="Licence as the hub spells it; cc-by-4.0 unless the data were imported.")
    ] = "",
    creator: Annotated[str, typer.Option(help="Name of the creator; by default the owner of the repository.")] = "",
    private: Annotated[
        bool, typer.Option("--private", help="If the repository does not exist yet, make it private.")
    ] = False,
    samples: Annotated[
        int, typer.Option(help="Number of samples that are solved more accurately if the card is missing.")
    ] = 16,
) -> None:
    """Publish a dataset on the hub, or write it into a folder.

    Card and metadata are added, so that datasets.load_dataset can read it. The file of members is published too, if
    there is one. The hub needs a token in HF_TOKEN and the extra hub.
    """
    import torch

    from spdebench.data import hub, publish
    from spdebench.report.card import card as make_card

    torch.set_num_threads(1)
    if out is not None:
        written = publish.publish(
            file, out, card=lambda ds: make_card(ds, samples), licence=licence, creator=creator or "Anonymous"
        )
        typer.echo("\n".join(f"{path} ({size(path.stat().st_size)})" for path in written))
        return
    place = hub.Repository(repo, revision)
    typer.echo(
        publish.push(
            file, place, card=lambda ds: make_card(ds, samples), licence=licence, creator=creator, private=private
        )
    )
