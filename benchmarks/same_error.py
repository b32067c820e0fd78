"""Check that plain and fast training reach the same error: complete trainings on phi41 in both forms.

    python benchmarks/same_error.py [MODEL ...] [--sigma 0.1] [--forms plain] [--jobs 4] [--device cuda] [--out FILE]

plain   torch's own operations, every step launched by itself
ours    our kernels, steps replayed as CUDA graphs

Both have the same options, initial weights and order of batches. They differ by rounding errors, which grow during
training. Therefore errors are compared and not weights: best validation, its epoch, and the error of those weights on
the test part. A second seed of ours shows how far apart two trainings are that differ only in the seed.
Runs of ours that `spdebench table phi41-periodic --run` has made already are the same trainings: `--forms plain` then
makes what is missing.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from csv_files import write_csv
from spdebench import Task, engines, equation, generate
from spdebench.accel import without_kernels
from spdebench.cli.output import print_table
from spdebench.models.features import prepare_part
from spdebench.training.identity import identify
from spdebench.training.loop import validation
from speed.train import prepared

MODELS = ("deeponet", "fno", "wno", "nspde")
FORMS = {"plain": 0, "ours": 0, "ours, seed 1": 1}


class Unit(NamedTuple):
    model: str
    form: str
    path: Path
    device: str
    epochs: int


def trained(unit: Unit) -> dict[str, Any]:
    """One training to its end, and its errors."""
    task, start = Task(unit.path), time.perf_counter()
    plain = unit.form == "plain"
    with without_kernels() if plain else nullcontext():
        options: dict[str, Any] = {"seed": FORMS[unit.form]} | ({"epochs": unit.epochs} if unit.epochs else {})
        run = identify(unit.model, task, {}, options)
        fit = prepared(run, task, unit.device, graph=False if plain else None)
        while not fit.finished:
            fit.run_epoch()
        fit.model.load_state_dict(fit.best_weights)
        test = validation(fit.model, prepare_part(fit.model, task.test))
    return {
        "model": unit.model,
        "form": unit.form,
        "epochs": fit.epoch,
        "best epoch": fit.best_epoch,
        "validation": f"{fit.best:.4g}",
        "test": f"{test:.4g}",
        "seconds": round(time.perf_counter() - start, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--sigma", type=float, default=0.1)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--samples", type=int, default=1200)
    parser.add_argument("--epochs", type=int, default=0, help="at most; 0: as the protocol says")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, help="a CSV table, updated after every training")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = generate(equation("phi41", sigma=given.sigma), n=given.samples, out=folder, device=given.device)
        units = [Unit(model, form, path, given.device, given.epochs) for form in given.forms for model in given.models]
        for row in engines.run(trained, units, given.jobs):
            rows.append(row)
            rows.sort(key=lambda r: (list(given.models).index(r["model"]), list(FORMS).index(r["form"])))
            if given.out:
                write_csv(given.out, rows)
    print_table(rows)


if __name__ == "__main__":
    main()
