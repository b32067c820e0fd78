"""Measure `campaign/rates.csv`: seconds per epoch of every model, equation and configuration in the paper's tables.

    python benchmarks/measure_rates.py cuda 240 phi41-periodic >> rates.csv

Arguments: device, samples, and tables if not all. The first epoch, in which CUDA graphs are captured, does not count.
On a processor the seconds are those of one thread, not those of the clock, so that other programs do not count.
Columns: model, equation, device, seconds per epoch, what an epoch costs in million numbers (`effort.epoch_cost`),
configuration.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import sys
import tempfile
import time
from collections.abc import Collection, Iterator

import torch

from spdebench.campaign.effort import epoch_cost, training_part
from spdebench.data import generate
from spdebench.data.identity import dataset_of
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.paper.catalogue import TABLES, table
from spdebench.spec import canonical_json
from spdebench.tasks import Task
from spdebench.training.identity import RunSpec, identify
from spdebench.training.loop import Fit
from speed.train import prepared


def cases(tables: Collection[str] = ()) -> list[RunSpec]:
    """The first run of each model, equation and configuration in these tables, by equation."""
    chosen = [table(name) for name in tables] or TABLES
    found: dict[tuple[str, str, str], RunSpec] = {}
    for run in (run for one in chosen for cell in one.cells(1, "paper") for run in cell.runs):
        if isinstance(run, RunSpec) and run.options["epochs"] and len(run.datasets) == 1:
            found.setdefault((run.equation, run.model, canonical_json(run.config)), run)
    return [found[key] for key in sorted(found)]


def measure(device: str, n: int, tables: Collection[str] = (), epochs: int = 3) -> Iterator[list[str]]:
    """Rows of the csv, each with the least time of the epochs after the first."""
    with tempfile.TemporaryDirectory() as folder, without_aliasing_warning():
        for case in cases(tables):
            name = [case.model, case.equation, torch.device(device).type]
            try:
                data = dataset_of(case.datasets[0])
                path = generate(data.equation, n=n, out=folder, seen=data.seen, device=device, allow_aliasing=True)
                task = Task(path, **dataclasses.asdict(dataclasses.replace(case.task_spec, n=0)))
                run = identify(case.model, task, case.config, {"epochs": epochs})
                fit = prepared(run, task, device)
                seconds = min([_epoch(fit, device) for _ in range(epochs)][1:])
            except (UserError, torch.OutOfMemoryError) as error:
                sys.stderr.write(f"{','.join(name)}: {error}\n")
                continue
            part = training_part([d.identity for d in task.datasets], run.task)
            size = epoch_cost(*part, run.options, device)
            yield [*name, f"{seconds:.4g}", f"{size:.4g}", canonical_json(case.config)]


def _epoch(fit: Fit, device: str) -> float:
    """Seconds of one epoch."""
    before = time.process_time()
    by_the_clock: float = fit.run_epoch()["seconds"]
    return time.process_time() - before if torch.device(device).type == "cpu" else by_the_clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device")
    parser.add_argument("samples", type=int)
    parser.add_argument("tables", nargs="*")
    given = parser.parse_args()
    torch.set_num_threads(1)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for row in measure(given.device, given.samples, given.tables):
        writer.writerow(row)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
