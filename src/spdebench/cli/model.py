"""``spdebench model``: publish and download trained models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spdebench.cli.output import size
from spdebench.errors import UserError
from spdebench.registry import command

app = typer.Typer(
    help="Publish and download trained models.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def push(
    run: Annotated[Path, typer.Argument(help="A finished run's folder.")],
    target: Annotated[str, typer.Argument(help="hub:OWNER/NAME, a folder, or a file FILE.safetensors.")],
    licence: Annotated[str, typer.Option("--license", help="Licence as the hub spells it.")] = "apache-2.0",
    private: Annotated[
        bool, typer.Option("--private", help="If the repository does not exist yet, make it private.")
    ] = False,
) -> None:
    """Publish weights, spec, record and a card. The hub needs a token in HF_TOKEN and the extra hub."""
    from spdebench.data.croissant import check_licence
    from spdebench.report.model_card import model_card
    from spdebench.training import open_run, share

    check_licence(licence)
    opened = open_run(run)
    if share.is_on_hub(target):
        repository = share.repository_of(target)
        typer.echo(share.push(opened, repository, lambda r: model_card(r, licence, target), private))
        return
    out = Path(target)
    if out.suffix == ".safetensors":
        if out.exists():
            raise UserError(f"{out} already exists; choose another name")
        written = [share.write_model(opened, out)]
    else:
        written = share.publish(
            opened, out, lambda r: model_card(r, licence, out.name if out.is_absolute() else target)
        )
    typer.echo("\n".join(f"{path} ({size(path.stat().st_size)})" for path in written))


@app.command()
def get(
    source: Annotated[str, typer.Argument(help="hub:OWNER/NAME or hub:OWNER/NAME@REVISION.")],
    out: Annotated[Path, typer.Option(help="Folder in which the folder of the model is created.")] = Path("models"),
) -> None:
    """Download a trained model and check it; no code of the model is run. Needs the extra hub."""
    from spdebench.training import share

    run = share.get(share.repository_of(source), out)
    score = run.record.scores.get("rel_l2")
    said = f", rel_l2 {score.value:.4g} on the test part" if score else ""
    typer.echo(f"{run.path}: {run.spec.model} for {run.spec.equation}, {run.record.parameters or 0:,} parameters{said}")
    typer.echo(f"next: {command('predict', run.path, 'DATA')}")
