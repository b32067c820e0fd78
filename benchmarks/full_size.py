"""Evidence for `explanations.toml` from networks with the paper's settings and sample size, on data nearer to the
authors' code. It needs a GPU.

    python benchmarks/full_size.py [wno fno kdv sum] [--n 1200] [--epochs E] [--out FILE.csv]

wno: phi41 with sine noise and the drift 3u - u^3, which has the statistics that the paper prints for its periodic data.
First the data alone are changed, then also the units of the noise and the weight decay, as in the authors' code.

fno: phi41 with Dirichlet boundary and the drift 3u - u^3; FNO with twice the channels on the data of table `scaling`,
with two other seeds, and on the data of ``wno``.

sum: our data, but the loss is a sum over the batch, as in the authors' code. To Adam that is the same as our mean with
weight decay and epsilon divided by the batch size. Most gradients of spectral and wavelet weights are smaller than
epsilon at the start (`evidence.py gradients`), so that epsilon may matter. The error is that of the validation part.

kdv: GT and FNO with dispersion 0.1, as in the authors' script; FNO and NSPDE on data of the authors' numerical step.

Prints, and writes as CSV, three rows for each network: the spread of u about its mean, the relative L2 error on the
test part, and the epoch of the weights that were kept.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from evidence import AuthorsKdV, AuthorsPhi41, error, facts, finish, made, paper_settings, printed
from sizes import relative
from spdebench import Equation, Task, train
from spdebench.equations import KdV, Phi41, Wave
from spdebench.training.identity import identify
from spdebench.training.loop import Fit
from speed.train import prepared


@dataclass(frozen=True)
class Case:
    """A network on one kind of data, with settings that differ from the paper's."""

    model: str
    data: str
    equation: Equation
    like: Equation
    """The equation whose settings the paper's tables use for this network."""
    config: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    changed: str = ""
    summed: bool = False
    """The loss is a sum over the batch."""

    @property
    def label(self) -> str:
        return ", ".join(filter(None, (self.model, self.changed)))


SINES, DRIFT = "sine noise, drift 3u - u^3", "Dirichlet, drift 3u - u^3"
SMALL, LARGE = Phi41(sigma=0.1), Phi41(sigma=1.0)
KDV = KdV(points=128)
AS_IN_CODE: dict[str, Any] = {
    "config": {"form": "published"},
    "options": {"weight_decay": 5e-8},
    "changed": "units and weight decay of the authors' code",
}
WIDE: dict[str, Any] = {"config": {"width": 64}, "changed": "width 64"}


def dirichlet(j: int) -> Case:
    eq = Phi41(boundary="dirichlet", mass=3.0, sigma=0.1, truncation=j)
    return Case("fno", f"{DRIFT}, sigma 0.1", eq, Phi41(boundary="dirichlet", sigma=0.1))


def wide(seed: int) -> Case:
    eq = Phi41(sigma=1.0, truncation=256)
    given = WIDE | {"options": {"seed": seed}, "changed": f"width 64, seed {seed}"}
    return Case("fno", "ours, sigma 1", eq, LARGE, **given)


def summed(model: str, data: str, equation: Equation, **config: Any) -> Case:
    return Case(model, data, equation, equation, config, changed="sum over the batch", summed=True)


CASES: dict[str, tuple[Case, ...]] = {
    "wno": (
        Case("wno", f"{SINES}, sigma 0.1", AuthorsPhi41(sigma=0.1, truncation=128), SMALL),
        Case("wno", f"{SINES}, sigma 0.1", AuthorsPhi41(sigma=0.1, truncation=128), SMALL, **AS_IN_CODE),
        Case("wno", f"{SINES}, sigma 1", AuthorsPhi41(sigma=1.0, truncation=128), LARGE, **AS_IN_CODE),
        Case("wno", f"{SINES}, sigma 0.1", AuthorsPhi41(sigma=0.1, truncation=256), SMALL, **AS_IN_CODE),
        Case("wno", f"{SINES}, sigma 1", AuthorsPhi41(sigma=1.0, truncation=256), LARGE, **AS_IN_CODE),
    ),
    "fno": (
        dirichlet(64),
        dirichlet(32),
        wide(1),
        Case("fno", f"{SINES}, sigma 1", AuthorsPhi41(sigma=1.0, truncation=256), LARGE, **WIDE),
        wide(2),
    ),
    "sum": (
        summed("wno", "ours, sigma 0.1", Phi41(sigma=0.1, truncation=128), form="published"),
        summed("fno", "ours, wave", Wave(truncation=256)),
        summed("fno", "ours, wave, Dirichlet", Wave(truncation=64, boundary="dirichlet")),
        summed("fno", "ours, KdV", KDV.replace(truncation=128)),
    ),
    "kdv": (
        Case("gt", "ours, dispersion 0.1", KdV(points=128, truncation=256, dispersion=0.1), KDV),
        Case("fno", "ours, dispersion 0.1", KdV(points=128, truncation=128, dispersion=0.1), KDV),
        Case("fno", "authors' step, dispersion 0.1, 200 steps", AuthorsKdV(dispersion=0.1, steps=200), KDV),
        Case("nspde", "authors' step, dispersion 0.1, 200 steps", AuthorsKdV(dispersion=0.1, steps=200), KDV),
        Case("fno", "authors' step, dispersion 1, 50 steps", AuthorsKdV(), KDV),
    ),
}


def rows(case: Case, folder: Path, n: int, **fewer: Any) -> Iterator[dict[str, Any]]:
    """Trains the network of one case, on a GPU if there is one."""
    eq = case.equation.replace(points=case.like.points)
    task = made(eq, n, folder)
    config, options = paper_settings(case.model, task, case.like, **case.options, **fewer)
    config |= case.config
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if case.summed:
        fit = summed_fit(case.model, task, config, options, device)
        value, best = fit.best, fit.best_epoch
    else:
        given = {"config": config, "device": device, "progress": False, "keep_predictions": False}
        run = train(case.model, task, out=folder / "runs", **given, **options)
        value, best = error(run.scores), run.record.best_epoch
    u = task.train.u
    yield facts("full-size", case.data, eq, n, "spread about the mean", relative(u - u.mean(0), u))
    yield facts("full-size", case.data, eq, n, case.label, value)
    yield facts("full-size", case.data, eq, n, f"{case.label}: best epoch", float(best))


def summed_fit(model: str, task: Task, config: dict[str, Any], options: dict[str, Any], device: str) -> Fit:
    """The training with a loss that is a sum over the batch."""
    batch = options["batch_size"]
    options = options | {"weight_decay": options["weight_decay"] / batch}
    fit = prepared(identify(model, task, config, options), task, device)
    for group in fit.learner.optimiser.param_groups:
        group["eps"] /= batch
    finish(fit)
    return fit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], default=[], metavar="CASE")
    parser.add_argument("--n", type=int, default=1200)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    fewer = {} if given.epochs is None else {"epochs": given.epochs}
    with tempfile.TemporaryDirectory() as folder:
        cases = [case for name in given.cases or CASES for case in CASES[name]]
        table = [printed(row) for case in cases for row in rows(case, Path(folder), given.n, **fewer)]
    if given.out:
        pd.DataFrame(table).to_csv(given.out, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
