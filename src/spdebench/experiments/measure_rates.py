"""Measure `rates.csv`: seconds an epoch of every model on every equation that the tables have.

    python -m spdebench.experiments.measure_rates cuda 240 >> rates.csv         (device, samples, equations if not all)

The first epoch, in which steps are captured and libraries chosen, does not count. A line: model, equation, device,
seconds an epoch, million numbers of the training part.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Collection, Iterator

import torch

from spdebench.data import generate
from spdebench.errors import UserError, folding_known
from spdebench.experiments.base import Want
from spdebench.experiments.catalogue import TABLES
from spdebench.experiments.rates import volume
from spdebench.experiments.solver import SOLVER
from spdebench.models import MODELS
from spdebench.tasks import Task
from spdebench.training.bench import prepared
from spdebench.training.identity import identify


def cases() -> list[Want]:
    """The first want of each model and equation, by equation."""
    found: dict[tuple[str, str], Want] = {}
    for table in TABLES:
        for want in table.wants:
            if want.model != SOLVER and MODELS[want.model].trainable and len(want.data) == 1:
                found.setdefault((want.data[0].equation, want.model), want)
    return [found[key] for key in sorted(found)]


def measure(device: str, n: int, equations: Collection[str] = (), epochs: int = 3) -> Iterator[str]:
    """Lines of the csv, for all equations or some; the least time of the epochs after the first."""
    with tempfile.TemporaryDirectory() as folder, folding_known():
        for want in cases():
            eq = want.data[0].spec().equation
            if equations and eq.name not in equations:
                continue
            name = f"{want.model},{eq.name},{torch.device(device).type}"
            try:
                task = Task(generate(eq, n=n, seed=0, out=folder, device=device), want.inputs)
                run = identify(want.model, task, want.config, {"epochs": epochs})
                fit = prepared(run, task, device)
                seconds = min([fit.run_epoch()["seconds"] for _ in range(epochs)][1:])
            except (UserError, torch.OutOfMemoryError) as error:
                sys.stderr.write(f"{name}: {error}\n")
                continue
            yield f"{name},{seconds:.4g},{volume([d.identity for d in task.datasets], run.task):.4g}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    for line in measure(sys.argv[1], int(sys.argv[2]), sys.argv[3:]):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
