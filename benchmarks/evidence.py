"""Evidence for what `explanations.toml` says: the same models on our data and on data nearer to the authors' code.

    python benchmarks/evidence.py [kdv-cylindrical kdv-q nse] [--n 400] [--train fno dlr-net] [--epochs 200] [--out ...]
    python benchmarks/evidence.py wno

Prints, and writes as CSV, one row a figure; models, ``solver`` and spreads are relative L2 on the test part. A sample
of nse costs as much as forty of kdv: there n/2 are made. ``--train`` adds networks on kdv with 16 points and no larger
J, the rate lowered along a cosine, since epochs are few.

damped: power of the noise divided by 1 + (omega dt/2)^2, as by Crank-Nicolson with dispersion 0.1 and dt 0.01, then our
solver. Models see the damped noise: it is what acts on u. authors' step: Crank-Nicolson and explicit Euler. Models see
the noise as it is drawn, as the authors' networks do; trees have the kernel of this step.

wno (ten minutes): its validation on a small phi41 in our units of noise and solution, and in those of the data.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import pandas as pd
import torch
from torch import Tensor

from spdebench import Equation, Task, evaluate, generate, solve, train
from spdebench.equations import NSE, KdV, Phi41
from spdebench.metrics import Scores
from spdebench.metrics.sobolev import power
from spdebench.models import MODELS
from spdebench.training import options_for
from spdebench.training.bench import prepared
from spdebench.training.identity import identify

POINTS = 16  # of the data that networks are trained on


def damping(omega: Tensor, dt: float) -> Tensor:
    """1/(1 + (omega dt/2)^2): what a Crank-Nicolson step leaves of the power of noise in a wave of this frequency."""
    return 1 / (1 + (omega * dt / 2) ** 2)


@dataclass(frozen=True, kw_only=True)
class DampedKdV(KdV, name="kdv-damped"):
    """KdV with eigenvalues lambda_k / (1 + (omega_k dt/2)^2), omega_k = 0.1 (2 pi k)^3."""

    damping_step: float = 0.01

    def eigenvalue_roots(self) -> Tensor:
        omega = 0.1 * (2 * math.pi * self.series().members[..., 0].double()) ** 3
        return super().eigenvalue_roots() * damping(omega, self.damping_step).sqrt()


@dataclass(frozen=True, kw_only=True)
class AuthorsKdV(Equation, name="kdv-authors"):
    """The mathematics of `KdV` by the step of the authors' code; no `KdV`, of which models know the exact flow."""

    noise: Literal["cylindrical", "q_wiener"] = "q_wiener"
    sigma: float = 0.1
    horizon: float = 0.5
    dispersion: float = 1.0

    schemes: ClassVar = {"paper": "crank_nicolson", "converged": "crank_nicolson"}
    formula, title = KdV.formula, KdV.title
    differences, symbol, nonlinear, initial, rule = KdV.differences, KdV.symbol, KdV.nonlinear, KdV.initial, KdV.rule


DATA: dict[str, dict[str, Equation]] = {
    "kdv-cylindrical": {
        "ours": KdV(noise="cylindrical"),
        "ours, J = 8": KdV(noise="cylindrical", truncation=8),
        "damped": DampedKdV(noise="cylindrical"),
        "damped, dispersion 0.1": DampedKdV(noise="cylindrical", dispersion=0.1),
    },
    "kdv-q": {
        "ours": KdV(),
        "ours, dispersion 0.1": KdV(dispersion=0.1),
        "authors' step, dispersion 0.1, 200 steps": AuthorsKdV(dispersion=0.1, steps=200),
        "authors' step, dispersion 1, 50 steps": AuthorsKdV(),
    },
    "nse": {
        "ours": NSE(),
        "spectrum of the code": NSE(spectrum="reference"),
        "spectrum and datum of the code": NSE(spectrum="reference", scale=162.0),
    },
}


def figures(eq: Equation, task: Task, runs: Path) -> Iterator[tuple[str, float]]:
    """Quantities of one data set and their values."""
    for name in ("mean", "linear", "trees"):
        yield name, error(train(name, task, out=runs, progress=False, keep_predictions=False).scores)
    if isinstance(eq, NSE):
        again = solve(eq, task.test.u0, task.test.dw)
        yield "solver", error(evaluate(again, task.test.u, eq.grid, metrics=["rel_l2"], resamples=0))
        return
    yield "Tr Q", eq.wiener().trace
    yield "E |u(T)|^2", float(task.test.u[:, -1].square().mean())
    angle = float(eq.symbol(eq.grid)[1].abs()) * eq.horizon / eq.steps
    turn = 2 * math.atan(angle / 2) if isinstance(eq, AuthorsKdV) else angle
    yield "rad that k = 1 turns in a frame", turn * eq.steps / eq.frames
    u = task.test.u[:, 1:].double()
    spread = power(eq.grid, u - task.train.u[:, 1:].double().mean(0)).mean((0, 1)) / u.square().mean()
    for name, some in (("k = 0", spread[:1]), ("k = 1", spread[1:2]), ("k > 1", spread[2:])):
        yield f"spread about the mean, {name}", math.sqrt(some.sum())
    if isinstance(eq, KdV):
        yield "mean, moving", moving_mean(task)


def error(scores: Scores) -> float:
    return float(scores["rel_l2"].value)


def moving_mean(task: Task) -> float:
    """Error of the mean of v in u(t, x) = m(t) + v(t, x + 6 int_0^t m), m the mean of u over x, which noise tells."""
    grid, k = task.setting.grid, task.setting.grid.wavenumbers()[0]

    def moved(v: Tensor, mean: Tensor, sign: int) -> Tensor:
        way = 6 * task.setting.dt * (mean.cumsum(1) - mean[:, :1])
        return grid.inverse(grid.transform(v) * torch.exp(sign * 1j * k * way))

    known, asked = task.train.u.double(), task.test.u.double()
    first, second = known.mean(-1, keepdim=True), asked.mean(-1, keepdim=True)
    guess = second + moved(moved(known - first, first, -1).mean(0), second, 1)
    return error(evaluate(guess, asked, grid, metrics=["rel_l2"], resamples=0))


def trained(name: str, task: Task, epochs: int, runs: Path) -> float:
    """A network with the paper's settings for KdV, but for the cosine and for modes that the grid does not have."""
    setting = dataclasses.replace(task.setting, equation=KdV(noise=task.equations[0].noise))
    config = dataclasses.asdict(MODELS[name].configure(setting, {}))
    options = options_for(name, setting, epochs=epochs, stop=0, scheduler="cosine")
    return error(train(name, task, out=runs, config=config, progress=False, **dataclasses.asdict(options)).scores)


def units_of_wno(folder: Path) -> Iterator[dict[str, Any]]:
    """WNO with the paper's settings but for width and the step of its schedule; the reference has the data's units."""
    for sigma, epochs in ((0.1, 90), (1.0, 50)):
        eq = Phi41(sigma=sigma, points=64, truncation=64)
        task = Task(generate(eq, n=300, out=folder))
        for form, units in (("default", "ours"), ("published", "the data's")):
            options = {"epochs": epochs, "step": epochs // 4, "stop": 0}
            fit = prepared(identify("wno", task, {"width": 16, "form": form}, options), task, "cpu")
            while not fit.finished:
                fit.run_epoch()
            facts = {"case": "wno", "data": f"sigma {sigma:g}", "points": 64, "J": 64, "samples": 300}
            yield facts | {"quantity": f"validation, units {units}", "value": fit.best}


def rows(case: str, n: int, networks: Sequence[str], epochs: int, folder: Path) -> Iterator[dict[str, Any]]:
    """One row a figure."""
    if case == "wno":
        yield from units_of_wno(folder)
        return
    n //= 2 if case == "nse" else 1
    for label, eq in DATA[case].items():
        facts = {"case": case, "data": label, "points": eq.points, "J": eq.truncation, "samples": n}
        task = Task(generate(eq, n=n, out=folder))
        for quantity, value in figures(eq, task, folder / "runs"):
            yield facts | {"quantity": quantity, "value": value}
        if networks and not isinstance(eq, NSE):
            few = eq.replace(points=POINTS, truncation=min(eq.truncation, POINTS))
            task, facts = Task(generate(few, n=n, out=folder)), facts | {"points": few.points, "J": few.truncation}
            for name in networks:
                value = trained(name, task, epochs, folder / "runs")
                yield facts | {"quantity": f"{name}, {epochs} epochs", "value": value}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[*DATA, "wno", []], default=[], metavar="CASE")
    parser.add_argument("--n", type=int, default=400)
    parser.add_argument("--train", nargs="+", default=(), metavar="MODEL")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    table = []
    with tempfile.TemporaryDirectory() as folder:
        for case in given.cases or DATA:
            for row in rows(case, given.n, given.train, given.epochs, Path(folder)):
                table.append(row)
                print(*(f"{v:.4g}" if isinstance(v, float) else v for v in row.values()), sep=", ", flush=True)
    if given.out:
        pd.DataFrame(table).to_csv(given.out, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
