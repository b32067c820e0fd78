"""``spdebench bench``: runs the benchmarks of the repository, which the installed package does not contain."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import typer

import spdebench
from spdebench.errors import UserError

FOLDER = Path(spdebench.__file__).resolve().parents[2] / "benchmarks"


def bench(context: typer.Context) -> None:
    """Measure the speed of data, metrics, models, train or kernels. Needs a clone of the repository."""
    if not (FOLDER / "speed").is_dir():
        raise UserError(
            "the installed package does not contain the benchmarks; clone the repository, run 'make setup' in it "
            "and call .venv/bin/spdebench bench there"
        )
    sys.path.insert(0, str(FOLDER))
    import_module("speed.verbs").app(context.args, prog_name="spdebench bench", standalone_mode=False)
