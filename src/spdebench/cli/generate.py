"""``spdebench generate``: make a dataset."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spdebench import spec
from spdebench.cli.output import Engine, Force, Json, SpecFields, check_folder_option, duration, print_json, size
from spdebench.progress import Progress
from spdebench.registry import command

if TYPE_CHECKING:
    from spdebench import data


def generate(
    equation: Annotated[str, typer.Argument(help="Name of the equation; see 'spdebench list equations'.")],
    overrides: SpecFields = None,
    n: Annotated[int, typer.Option("-n", help="Number of samples.")] = 1200,
    seed: Annotated[int, typer.Option(help="Seed of the noise and of the initial data.")] = 0,
    out: Annotated[Path, typer.Option(callback=check_folder_option, help="Folder for the file.")] = Path("data"),
    chunk: Annotated[
        int,
        typer.Option(
            help="Number of samples that are solved together (0: automatic); it is part of the dataset's spec."
        ),
    ] = 0,
    seen: Annotated[
        int | None,
        typer.Option(help="Also store the noise of truncation K as dw_seen, the input of tasks with seen=K."),
    ] = None,
    members: Annotated[
        int,
        typer.Option(
            help="Samples of the law of u given u0 and dw_seen, for each sample of the test part (a second file)."
        ),
    ] = 1,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Number of chunks that are solved at the same time (default: 1; ray: as many as fit on the cluster)."
        ),
    ] = None,
    allow_aliasing: Annotated[
        bool,
        typer.Option("--allow-aliasing", help="Allow noise with more modes than the grid resolves, as in the paper."),
    ] = False,
    device: Annotated[str, typer.Option(help="cpu or cuda; with --engine ray a device of the cluster.")] = "cpu",
    engine: Engine = "local",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only estimate size and time.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Generate a dataset.

    The same command continues after an interruption. The same spec always gives the same bytes.
    """
    import torch

    from spdebench import data
    from spdebench.data.checks import check_aliasing, check_disk, check_folder, check_where
    from spdebench.equations import EQUATIONS

    torch.set_num_threads(1)
    check_where(device, engine)
    chosen = spec.build(EQUATIONS[equation], spec.parse_overrides(overrides or []), equation)
    identity = data.DatasetSpec(equation=chosen, n=n, seed=seed, chunk=chunk, seen=seen)
    files = [identity] if members == 1 else [identity, dataclasses.replace(identity, members=members)]
    paths = [out / each.file_name for each in files]
    missing = [each for each, path in zip(files, paths, strict=True) if not path.exists()]
    if missing:
        check_aliasing(chosen, allow_aliasing)
    if missing and not dry_run:
        check_folder(out)
    if missing:
        check_disk(missing, out)
    if dry_run:
        _print_estimates(dict(zip(paths, files, strict=True)), workers or 1, device, as_json)
        return
    if not as_json and missing:
        what = f"{chosen.title}, {chosen.edition} edition, J={chosen.truncation}"
        law = f", {members} members for each of {len(identity.inputs)} inputs" if members > 1 else ""
        total = sum(each.total * each.sample_bytes for each in missing)
        typer.echo(f"{n} samples of {what}{law}, about {size(total)}")
    with Progress(sum(each.total for each in files), "samples") as bar:

        def report(fresh: int, found: int, largest: float) -> None:
            bar.skip(found)
            bar.advance(fresh, f"max|u| {largest:.3g}")

        data.generate(
            chosen,
            n=n,
            seed=seed,
            out=out,
            chunk=chunk,
            seen=seen,
            members=members,
            workers=workers,
            device=device,
            engine=engine,
            allow_aliasing=allow_aliasing,
            report=report,
            force=force,
        )
    if as_json:
        sizes = [path.stat().st_size for path in paths]
        facts = {"file": str(paths[0]), "bytes": sizes[0], "made": identity in missing}
        print_json(facts if members == 1 else facts | {"members_file": str(paths[1]), "members_bytes": sizes[1]})
        return
    for each, path in zip(files, paths, strict=True):
        typer.echo(f"{path} ({size(path.stat().st_size)}{'' if each in missing else ', already exists'})")
    typer.echo(f"next: {command('data verify', paths[0])}")


def _print_estimates(files: dict[Path, data.DatasetSpec], workers: int, device: str, as_json: bool) -> None:
    """Print the size and the time of making the file of samples, and of the file of members if there is one."""
    from spdebench.data.checks import disk_bytes, estimate

    facts: dict[str, Any] = {}
    for (path, identity), prefix in zip(files.items(), ("", "members_"), strict=False):
        file_bytes, seconds = estimate(identity, workers, device)
        peak = disk_bytes(identity)
        values = {"file": str(path), "bytes": file_bytes, "peak_disk_bytes": peak, "seconds": seconds}
        facts |= {f"{prefix}{key}": value for key, value in values.items()}
        if not as_json:
            room = f"about {size(file_bytes)} ({size(peak)} while it is made)"
            typer.echo(f"{identity.rows_text}, {room}, about {duration(seconds)}")
            typer.echo(f"{path}")
    if as_json:
        print_json(facts)
