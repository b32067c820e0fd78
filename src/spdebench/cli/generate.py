"""``spdebench generate``: make a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spdebench import spec
from spdebench.cli.output import Device, Engine, Force, Json, SpecFields, duration, print_json, size
from spdebench.progress import Progress
from spdebench.registry import command

if TYPE_CHECKING:
    from spdebench import data


def generate(
    equation: Annotated[str, typer.Argument(help="Name of the equation; see 'spdebench list equations'.")],
    overrides: SpecFields = None,
    n: Annotated[int, typer.Option("-n", help="Number of samples.")] = 1200,
    seed: Annotated[int, typer.Option(help="Seed of the noise and of the initial data.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the file.")] = Path("data"),
    chunk: Annotated[
        int, typer.Option(help="Samples that are solved together (0: automatic); they are part of the dataset's spec.")
    ] = 0,
    workers: Annotated[
        int | None,
        typer.Option(help="Chunks that are solved at the same time (local: 1; ray: as many as the cluster holds)."),
    ] = None,
    device: Device = "cpu",
    engine: Engine = "local",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate size and time; make nothing.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Make a dataset. Typed again, an interrupted command continues; the same spec always gives the same bytes."""
    import torch

    from spdebench import data
    from spdebench.data.generate import check_disk, check_folder, check_where
    from spdebench.equations import EQUATIONS

    torch.set_num_threads(1)
    chosen = spec.build(EQUATIONS[equation], spec.parse_overrides(overrides or []), equation)
    identity = data.DatasetSpec(equation=chosen, n=n, seed=seed, chunk=chunk)
    path = out / identity.file_name
    check_where(device, engine)
    if dry_run:
        check_disk(identity, out)
        _say_estimate(identity, path, workers or 1, device, as_json)
        return
    existed = path.exists()
    if not existed:
        check_folder(out)
        check_disk(identity, out)
    if not as_json and not existed:
        what = f"{chosen.title}, {chosen.edition} edition, J={chosen.truncation}"
        typer.echo(f"{n} samples of {what}, about {size(n * identity.sample_bytes)}")
    with Progress(n, "samples") as bar:

        def report(fresh: int, found: int, largest: float) -> None:
            bar.skip(found)
            bar.advance(fresh, f"max|u| {largest:.3g}")

        path = data.generate(
            chosen,
            n=n,
            seed=seed,
            out=out,
            chunk=chunk,
            workers=workers,
            device=device,
            engine=engine,
            report=report,
            force=force,
        )
    if as_json:
        print_json({"file": str(path), "bytes": path.stat().st_size, "made": not existed})
        return
    typer.echo(f"{path} ({size(path.stat().st_size)}{', there already' if existed else ''})")
    typer.echo(f"next: {command(f'data verify {path}')}")


def _say_estimate(identity: data.DatasetSpec, path: Path, workers: int, device: str, as_json: bool) -> None:
    """Print the size and the time of a generation."""
    from spdebench.data.generate import disk_bytes, estimate

    file_bytes, seconds = estimate(identity, workers, device)
    peak = disk_bytes(identity)
    if as_json:
        print_json({"file": str(path), "bytes": file_bytes, "peak_disk_bytes": peak, "seconds": seconds})
        return
    typer.echo(
        f"{identity.n} samples, about {size(file_bytes)} ({size(peak)} while it is made), about {duration(seconds)}"
    )
    typer.echo(f"{path}")
