"""Common output and options of the commands: aligned tables for people, one JSON document for programs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from spdebench.display import TableRows, aligned
from spdebench.errors import UserError


def check_device_option(device: str) -> str:
    """Check that this machine has the device; used as the callback of an option, so that it is checked first."""
    if device != "cpu":
        from spdebench.data.checks import check_device  # slow to import

        check_device(device)
    return device


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Device = Annotated[str, typer.Option("--device", callback=check_device_option, help="cpu or cuda.")]
Engine = Annotated[
    str, typer.Option("--engine", help="local, or ray (the cluster at RAY_ADDRESS, or a new one on this machine).")
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Keep or continue work of another version or device; the result names both."),
]
ChosenPart = Annotated[
    str,
    typer.Option(
        "--part", help="train, val, test, unseen or all; by default samples that the run has not seen (see the output)."
    ),
]
KnownRecords = Annotated[
    Path | None,
    typer.Option(
        "--results",
        show_default=False,
        help="Folder of run records; by default those of the package and of results/.",
    ),
]
SpecFields = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Fields; 'spdebench show NAME' lists them; J is truncation."),
]


def check_sample_count(n: int | None) -> int | None:
    """Check the value of ``-n``; used as the callback of an option."""
    if n is not None and n < 1:
        raise UserError(f"-n must be at least 1, got {n}")
    return n


def check_file_option(file: Path | None) -> Path | None:
    """Check that the folder of a file to be written exists; used as the callback of an option."""
    if file is not None and not file.parent.exists():
        raise UserError(f"no such folder: {file.parent}; make it first, or write {file.name} into another")
    return file


def check_folder_option(out: Path) -> Path:
    """Check that a folder for data is not named like a file; used as the callback of an option."""
    if out.suffix == ".parquet" and not out.is_dir():
        raise UserError(f"--out is a folder, which gets a file with a name of its own; got the name of a file: {out}")
    return out


def print_json(value: Any) -> None:
    """Print one JSON document; numbers that are not finite become null."""
    typer.echo(json.dumps(_plain(value), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    """Nested values for JSON; numbers that are not finite become None."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_table(rows: TableRows) -> None:
    """Print rows with the same keys as an aligned table, numbers to four digits."""
    for line in aligned(rows):
        typer.echo(line)


def size(count: float) -> str:
    """A number of bytes as text: ``1.5 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:  # larger numbers are rounded to 1000
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def duration(seconds: float) -> str:
    """A time as text: ``3 min 05 s``."""
    if seconds < 60:
        return f"{seconds:.2g} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s" if seconds < 3600 else f"{seconds / 3600:.1f} h"
