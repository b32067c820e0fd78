"""Evidence for what `explanations.toml` says: the same models on our data and on data nearer to the authors' code.

    python benchmarks/evidence.py [kdv-cylindrical kdv-q nse] [--n 400] [--train fno dlr-net] [--epochs 200] [--out ...]
    python benchmarks/evidence.py lag wno wave wave-modes aliasing phi42 phi42-u0 phi43 kdv-decay step-kdv gt-kdv
    python benchmarks/evidence.py gradients lift wno-data phi41-law
    python benchmarks/evidence.py nspde-stop

Prints, and writes as CSV, one row per number. Errors of models and of ``solver``, and standard deviations, are relative
L2 on the test part. A sample of nse costs as much as forty of kdv, so only n/2 samples of nse are used. ``--train``
adds networks on kdv with 16 points and J of at most 16, with a cosine schedule of the learning rate.

Cases of kdv. damped: the power of the noise is divided by 1 + (omega dt/2)^2, as Crank-Nicolson with dispersion
0.1 and dt 0.01 does, and our solver is used. The input of models is the damped noise, which is what acts on u. authors'
step: Crank-Nicolson and explicit Euler. The input of models is the noise before damping, as for the authors' networks;
trees have the kernel of this step.

step-kdv (three minutes): the regression of the step in a frame at rest, and in one that moves with the mean of u.

gt-kdv (five minutes): GT, which knows time only as one coordinate, on KdV with slow and with fast waves. ``mean of gt``
is |mean of (prediction - u) over the test samples| / |u|, the part of its error that is the same in every sample.

lag: by how much the error grows if a model uses every increment one step late, as the authors' controlled differential
equations do.

wno (ten minutes): its validation on a small phi41 in our units of noise and solution, and in those of the data.

wno-data (ten minutes): WNO on our phi41 and on one with sine noise, a periodic Laplacian and the drift 3u - u^3.

nspde-stop (six minutes): the part of phi41 in modes that NSPDE leaves out, and the validation error that it ends with
on a small phi41 by our rule for keeping weights and stopping, and by that of the authors' code, on the same curve.

aliasing: the spread of phi41 with Dirichlet boundary and J = 256 on a few numbers of points.

wave (six minutes), wave-modes, phi42 (two), phi43: what a network cannot tell because of its size, without training
it. FNO's lift makes ``width`` numbers of the noise of all frames at a point: ``unseen`` is what the best ones leave
of the linear solution. ``outside`` is the part of u - E u in modes that the layers leave out, ``filter`` the error of
the best periodic convolution with the kept modes, fitted on one half of the samples and tested on the other. wave and
kdv-decay (ten minutes) train small networks: error of the last epoch and best validation. The reference's loss is a
sum over the batch, ours a mean: to Adam that is the same if its decay and its epsilon are divided by the batch.

gradients (one minute): the share of the spectral (FNO) or wavelet (WNO) weights whose gradient at the start is smaller
than Adam's epsilon, with a mean over the batch and with a sum.
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

from sizes import authors_phi42, best_filter, heat_gram, outside, relative, unseen, wave_gram
from spdebench import Equation, Task, evaluate, generate, simulate, solve, train
from spdebench.equations import NSE, KdV, Phi41, Phi42, Phi43, Wave
from spdebench.grids import Grid
from spdebench.metrics import Scores
from spdebench.metrics.sobolev import power
from spdebench.models import MODELS
from spdebench.models.step.choose import Search, Sizes, training_and_validation
from spdebench.models.step.choose import error as path_error
from spdebench.models.step.rollout import Paths
from spdebench.noise import Basis
from spdebench.noise.bases import Sine
from spdebench.training import options_for
from spdebench.training.identity import identify
from spdebench.training.loop import Fit
from speed.train import prepared

POINTS = 16  # of the data that networks are trained on


def damping(omega: Tensor, dt: float) -> Tensor:
    """1/(1 + (omega dt/2)^2): what a Crank-Nicolson step leaves of the power of noise in a wave of this frequency."""
    return 1 / (1 + (omega * dt / 2) ** 2)


@dataclass(frozen=True, kw_only=True)
class DampedKdV(KdV, name="kdv-damped"):
    """KdV with eigenvalues lambda_k / (1 + (omega_k dt/2)^2), omega_k = 0.1 (2 pi k)^3."""

    damping_step: float = 0.01

    def eigenvalue_roots(self) -> Tensor:
        omega = 0.1 * (2 * math.pi * self.series().function_wavevectors[..., 0].double()) ** 3
        return super().eigenvalue_roots() * damping(omega, self.damping_step).sqrt()


class SinesOnCircle(Sine):
    """sqrt(2) sin(k pi x), k = 1..J, at the points of a periodic grid."""

    def physical(self, z: Tensor, grid: Grid) -> Tensor:
        interval = Grid(grid.points, grid.lower, grid.upper, "dirichlet")
        return interval.inverse(super().spectral(z, interval))

    def spectral(self, z: Tensor, grid: Grid) -> Tensor:
        return grid.transform(self.physical(z, grid))


@dataclass(frozen=True, kw_only=True)
class AuthorsPhi41(Phi41, name="phi41-authors"):
    """Periodic phi41 with sine noise and the drift 3u - u^3: of the laws tried, the one with the statistics that the
    paper prints for its periodic data."""

    mass: float = 3.0

    def series(self) -> Basis:
        return SinesOnCircle(self.truncation)


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
        "ours": NSE(spectrum="paper"),
        "spectrum of the code": NSE(spectrum="reference"),
        "spectrum and datum of the code": NSE(spectrum="reference", scale=162.0),
    },
}


FEW: dict[str, Any] = {"early_stop_patience": 0, "scheduler": "cosine"}
"""Options of networks that are trained for few epochs."""

KERNEL = {"kernel": "generator"}
"""Of regressions and of dlr-net: the linear part of the scheme that made the data, as in the paper's tables."""


def made(eq: Equation, n: int, folder: Path) -> Task:
    """The task of n samples, which are made first; split as in the paper's tables."""
    return Task(generate(eq, n=n, out=folder, allow_aliasing=True), split="70:15:15")


def figures(eq: Equation, task: Task, runs: Path) -> Iterator[tuple[str, float]]:
    """Quantities of one data set and their values."""
    for name in ("mean", "linear", "trees"):
        config = {} if name == "mean" else KERNEL
        yield name, error(train(name, task, out=runs, config=config, progress=False, keep_predictions=False).scores)
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


def paper_settings(name: str, task: Task, like: Equation, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Configuration and options that the paper's tables have for a network on data of the equation ``like``."""
    setting = dataclasses.replace(task.setting, equation=like)
    config = dataclasses.asdict(MODELS[name].configure(setting, {}))
    return config, dataclasses.asdict(options_for(name, setting, **options))


def trained(name: str, task: Task, epochs: int, runs: Path) -> float:
    """A network with the paper's settings for KdV, but for the cosine and for modes that the grid does not have."""
    config, options = paper_settings(name, task, KdV(noise=task.equations[0].noise), epochs=epochs, **FEW)
    return error(train(name, task, out=runs, config=config, progress=False, **options).scores)


def units_of_wno(folder: Path) -> Iterator[dict[str, Any]]:
    """WNO with the paper's settings but for width and the step of its schedule; the reference has the data's units."""
    for sigma, epochs in ((0.1, 90), (1.0, 50)):
        eq = Phi41(sigma=sigma, points=64, truncation=64)
        task = made(eq, 300, folder)
        for form, units in (("default", "ours"), ("published", "the data's")):
            options = {"epochs": epochs, "decay_every": epochs // 4, "early_stop_patience": 0}
            fit = finish(prepared(identify("wno", task, {"width": 16, "form": form}, options), task, "cpu"))
            yield facts("wno", f"sigma {sigma:g}", eq, 300, f"validation, units {units}", fit.best)


def data_of_wno(folder: Path, n: int = 300, epochs: int = 30) -> Iterator[dict[str, Any]]:
    """WNO in the data's units on data of the text and on data that have the statistics the paper prints."""
    options = {"epochs": epochs, "decay_every": epochs // 4, "early_stop_patience": 0}
    for sigma in (0.1, 1.0):
        for j in (64, 128):  # on 64 points: not aliased, and aliased like 256 on 128 points
            for label, kind in (("ours", Phi41), ("sine noise, drift 3u - u^3", AuthorsPhi41)):
                eq = kind(sigma=sigma, points=64, truncation=j)
                task = made(eq, n, folder)
                fit = finish(prepared(identify("wno", task, {"width": 16, "form": "published"}, options), task, "cpu"))
                name = f"{label}, sigma {sigma:g}"
                u = task.train.u
                yield facts("wno-data", name, eq, n, "spread about the mean", relative(u - u.mean(0), u))
                yield facts("wno-data", name, eq, n, "wno: validation", fit.best)


def stopping_of_nspde(folder: Path, n: int = 240, epochs: int = 1000) -> Iterator[dict[str, Any]]:
    """NSPDE with the paper's optimiser. The authors' code counts an improvement from an absolute amount on, 1e-4 or
    2e-4, and keeps no weights without one; ours keeps every improvement and stops by a relative amount. Before that,
    the part of u in modes that the paper's 64 x 50 leave out."""
    for j in (32, 64, 128, 256):
        eq = Phi41(sigma=0.1, truncation=j)
        u = simulate(eq, 0, range(200)).u.double()
        yield facts("nspde-stop", "ours, sigma 0.1", eq, 200, "outside, |k| <= 32, |w| <= 25", outside(u, (25, 32)))
    for sigma in (0.1, 1.0):
        eq = Phi41(sigma=sigma, points=16, truncation=8, steps=20, frames=20)
        task = made(eq, n, folder)
        _, options = paper_settings("nspde", task, Phi41(sigma=sigma), epochs=epochs, batch_size=10)
        fit = finish(prepared(identify("nspde", task, {"hidden": 16, "modes": (16, 20)}, options), task, "cpu"))
        errors = [line["val"] for line in fit.log]
        yield facts("nspde-stop", f"ours, sigma {sigma:g}", eq, n, "validation, our rule", fit.best)
        for amount in (1e-4, 2e-4):
            value = kept_by_amount(errors, amount, options["early_stop_patience"])
            yield facts("nspde-stop", f"ours, sigma {sigma:g}", eq, n, f"validation, absolute {amount:g}", value)


def kept_by_amount(errors: Sequence[float], amount: float, patience: int) -> float:
    """The last error that was smaller by ``amount`` than the one kept before it; after ``patience`` epochs without one
    training stops."""
    kept, waited = math.inf, 0
    for value in errors:
        if waited == patience:
            break
        kept, waited = (value, 0) if value <= kept - amount else (kept, waited + 1)
    return kept


def law_of_phi41(folder: Path, n: int = 300) -> Iterator[dict[str, Any]]:
    """What the paper prints for sigma 1 at J = 2 and 256: s.d. of u(T) 0.25 and 0.43, E |u(T)|^2 0.10 and 0.23."""
    for label, kind in (("ours", Phi41), ("sine noise, drift 3u - u^3", AuthorsPhi41)):
        for j in (2, 256):
            eq = kind(sigma=1.0, truncation=j)
            u = simulate(eq, 0, range(n)).u[:, -1].double()
            yield facts("phi41-law", label, eq, n, "s.d. of u(T)", float(u.std(0).mean()))
            yield facts("phi41-law", label, eq, n, "E |u(T)|^2", float(u.square().mean()))


def all_samples(eq: Equation, n: int, folder: Path) -> tuple[Tensor, Tensor]:
    """u and the noise of n samples, sub-sampled as the paper does."""
    task = made(eq, n, folder)
    parts = task.train, task.val, task.test
    return torch.cat([p.u for p in parts]).double(), torch.cat([p.dw for p in parts]).double()


def late_noise(folder: Path, n: int = 200) -> Iterator[dict[str, Any]]:
    """Error of the solver if every increment acts a step late, the first one twice."""
    for sigma in (0.1, 1.0):
        eq = Phi41(sigma=sigma)
        u, dw = all_samples(eq, n, folder)
        late = torch.cat([dw[:, :2], dw[:, 1:-1]], 1)
        value = relative(solve(eq, u[:, 0], late) - u, u)
        yield facts("lag", f"sigma {sigma:g}", eq, n, "solver, noise a step late", value)


def size_on_phi43(folder: Path) -> Iterator[dict[str, Any]]:
    eq = Phi43()
    gram = heat_gram(eq, 8)
    for width in (8, 16, 24, 32):
        yield facts("phi43", "ours, linear", eq, 0, f"unseen by width {width}", unseen(gram, width))


def modes_on_phi42(folder: Path, n: int = 160) -> Iterator[dict[str, Any]]:
    eq = Phi42(truncation=128)
    u, dw = all_samples(eq, n, folder)
    theirs, path, _ = authors_phi42(n, 128)
    for data, field, noise in (("ours", u, dw.cumsum(1)), ("authors' scheme", theirs, path)):
        yield facts("phi42", data, eq, n, "E |u(T)|^2", float(field[:, -1].square().mean()))
        yield facts("phi42", data, eq, n, "spread about the mean", outside(field, (-1, -1, -1)))
        for tops in ((4, 4, 4), (4, 8, 4), (4, 8, 8)):
            modes = ",".join(str(2 * top) for top in (*tops[1:], tops[0]))
            yield facts("phi42", data, eq, n, f"outside modes ({modes})", outside(field, tops))
            for name, xi in (("dW", noise.diff(dim=1, prepend=noise[:, :1])), ("W", noise)):
                value = best_filter(field, xi, tops)
                yield facts("phi42", data, eq, n, f"filter of {name}, modes ({modes})", value)


def modes_with_u0(folder: Path, n: int = 40) -> Iterator[dict[str, Any]]:
    for j in (64, 128):
        eq = Phi42(truncation=j, kappa=0.1)
        u = simulate(eq, 0, range(n)).u[:, ::5].double()  # the frames that the paper's models see
        yield facts("phi42-u0", "ours", eq, n, "outside modes (16,8,8)", outside(u, (4, 8, 4)))


def size_on_wave(folder: Path) -> Iterator[dict[str, Any]]:
    n = 100
    for modes in (128, 256):  # every mode of the grid is driven
        eq = Wave(truncation=modes)
        u, _ = all_samples(eq, n, folder)
        spread = outside(u, (-1, -1))
        yield facts("wave", "ours", eq, n, "spread about the mean", spread)
        yield facts("wave", "ours", eq, n, "outside |k| < 32", outside(u, (eq.frames, 31)))
        value = spread * unseen(wave_gram(eq, u.mean(0)), 32)
        yield facts("wave", "ours", eq, n, "unseen by width 32", value)
    eq, n = Wave(points=16, truncation=32, frames=20, steps=100), 1200
    task = made(eq, n, folder)
    for name in ("linear", "trees"):
        run = train(name, task, out=folder / "runs", config=KERNEL, progress=False, keep_predictions=False)
        value = error(run.scores)
        yield facts("wave", "small", eq, n, name, value)
    yield from briefly("wave", "fno", task, {"width": 16}, 60)


def modes_on_wave(folder: Path, n: int = 60) -> Iterator[dict[str, Any]]:
    for boundary in ("periodic", "dirichlet"):
        for j in (32, 64, 128, 256):
            eq = Wave(truncation=j, boundary=boundary)
            u = simulate(eq, 0, range(n)).u.double()
            yield facts("wave-modes", boundary, eq, n, "outside |k| < 32", outside(u, (eq.frames, 31)))


def points_at_256(folder: Path, n: int = 100) -> Iterator[dict[str, Any]]:
    for points in (127, 128, 129):
        eq = Phi41(sigma=1.0, boundary="dirichlet", truncation=256, points=points)
        u = simulate(eq, 0, range(n)).u.double()[:, 1:]
        yield facts("aliasing", "dirichlet", eq, n, "s.d. of u", float((u - u.mean(0)).square().mean().sqrt()))


def decay_on_kdv(folder: Path) -> Iterator[dict[str, Any]]:
    task = made(KdV(points=POINTS, truncation=POINTS), 400, folder)
    for name in ("fno", "dlr-net"):
        yield from briefly("kdv-decay", name, task, KERNEL if name == "dlr-net" else {}, 100)


def briefly(case: str, name: str, task: Task, config: dict[str, Any], epochs: int) -> Iterator[dict[str, Any]]:
    """Errors with our loss, a mean over the batch; with the data's units; with the decay that a sum would have; and
    with a sum, whose epsilon is smaller too."""
    eq, n = task.equations[0], len(task.datasets[0])
    given = FEW | {"epochs": epochs}
    usual = options_for(name, task.setting)
    for label, decay in (
        ("", usual.weight_decay),
        (", the data's units", usual.weight_decay),
        (", decay / batch", usual.weight_decay / usual.batch_size),
        (", sum over the batch", usual.weight_decay / usual.batch_size),
    ):
        fit = prepared(identify(name, task, config, given | {"weight_decay": decay}), task, "cpu")
        if "units" in label:
            if not isinstance(scales := getattr(fit.model, "scales", None), Tensor):
                continue
            scales.fill_(1)
        if "sum" in label:
            for group in fit.learner.optimiser.param_groups:
                group["eps"] /= usual.batch_size
        finish(fit)
        yield facts(case, "small", eq, n, f"{name}{label}: training", fit.log[-1]["train"])
        yield facts(case, "small", eq, n, f"{name}{label}: validation", fit.best)


def gradients(folder: Path, n: int = 8) -> Iterator[dict[str, Any]]:
    """Adam changes a weight by rate * g / (|g| + epsilon): those with |g| < epsilon hardly move."""
    for name, eq, weights in (
        ("fno", Wave(truncation=64, boundary="dirichlet"), "spectral"),
        ("wno", Phi41(), "layers.0.weight"),
    ):
        task = made(eq, n, folder)
        fit = prepared(identify(name, task, {}, {}), task, "cpu")
        epsilon, part = fit.learner.optimiser.defaults["eps"], task.train
        rest = (fit.model(fit.model.prepare(part.batch())) - part.u)[:, 1:].flatten(1).norm(dim=1)
        (rest / part.u[:, 1:].flatten(1).norm(dim=1)).mean().backward()
        grown = [
            p.grad.abs().flatten() for key, p in fit.model.named_parameters() if weights in key and p.grad is not None
        ]
        sizes = torch.cat(grown)
        for loss, factor in (("mean", 1), ("sum", 20)):
            value = float((factor * sizes < epsilon).double().mean())
            yield facts("gradients", name, eq, n, f"share below epsilon, {loss} over a batch of 20", value)


def lift_on_phi41(folder: Path, n: int = 200) -> Iterator[dict[str, Any]]:
    """What FNO with width 32 cannot tell of phi41, with the drift of the text and with the authors' 3u - u^3."""
    for boundary in ("periodic", "dirichlet"):
        for mass in (0.0, 3.0):
            eq = Phi41(boundary=boundary, mass=mass)
            u = simulate(eq, 0, range(n)).u.double()
            spread = outside(u, (-1, -1))
            label = f"{boundary}, drift {'3u ' if mass else ''}- u^3"
            yield facts("lift", label, eq, n, "spread about the mean", spread)
            yield facts("lift", label, eq, n, "unseen by width 32", spread * unseen(heat_gram(eq, 1), 32))


def finish(fit: Fit) -> Fit:
    while not fit.finished:
        fit.run_epoch()
    return fit


def waves_for_gt(folder: Path) -> Iterator[dict[str, Any]]:
    """GT on the kdv-q data with 16 points; and on the solution without noise, which is one function of (t, x)."""
    for label, eq in DATA["kdv-q"].items():
        n, few = 160, eq.replace(points=POINTS, truncation=POINTS)
        task = made(few, n, folder)
        fit = finish(prepared(identify("gt", task, {}, FEW | {"epochs": 60, "batch_size": 10}), task, "cpu"))
        u, rest = task.test.u[:, 1:], (fit.model.predict(task.test.batch()) - task.test.u)[:, 1:]
        size = u.square().mean().sqrt()
        yield facts(
            "gt-kdv", label, few, n, "spread about the mean", float((u - u.mean(0)).square().mean().sqrt() / size)
        )
        yield facts("gt-kdv", label, few, n, "gt, 720 steps", float(rest.square().mean().sqrt() / size))
        yield facts("gt-kdv", label, few, n, "mean of gt, 720 steps", float(rest.mean(0).square().mean().sqrt() / size))
    for label, dispersion in (("ours", 1.0), ("ours, dispersion 0.1", 0.1)):
        n, few = 7, KdV(points=POINTS, truncation=POINTS, sigma=0.0, dispersion=dispersion)
        task = made(few, n, folder)
        fit = finish(prepared(identify("gt", task, {}, FEW | {"epochs": 720}), task, "cpu"))
        yield facts("gt-kdv", f"{label}, no noise", few, n, "gt: training, 720 steps", fit.log[-1]["train"])


def step_on_kdv(folder: Path, n: int = 120) -> Iterator[dict[str, Any]]:
    """Error of `step` on 20 new paths of KdV with cylindrical noise, in a frame at rest and in one that may move."""
    for j in (32, 64, 128):
        eq = KdV(noise="cylindrical", truncation=j)
        out = simulate(eq, 0, range(n + 20))
        fitted, val = training_and_validation(Paths(out.u[:n], out.dw[:n]))
        for label in ("frame at rest", "moving frame"):
            search = Search(eq.grid, fitted, val, Sizes.of(eq.grid, fitted.frames, 50_000))
            if label == "frame at rest":
                search.velocity = ()
            value = path_error(search.run().stepper, Paths(out.u[n:], out.dw[n:]))
            yield facts("step-kdv", label, eq, n, "step", value)


def facts(case: str, data: str, eq: Equation, samples: int, quantity: str, value: float) -> dict[str, Any]:
    """A row."""
    names = ("case", "data", "points", "J", "samples", "quantity", "value")
    return dict(zip(names, (case, data, eq.points, eq.truncation, samples, quantity, value), strict=True))


def printed(row: dict[str, Any]) -> dict[str, Any]:
    """The row, after printing it."""
    print(*(f"{v:.4g}" if isinstance(v, float) else v for v in row.values()), sep=", ", flush=True)
    return row


ALONE = {
    "lag": late_noise,
    "wno": units_of_wno,
    "wno-data": data_of_wno,
    "nspde-stop": stopping_of_nspde,
    "phi41-law": law_of_phi41,
    "wave": size_on_wave,
    "wave-modes": modes_on_wave,
    "aliasing": points_at_256,
    "phi42": modes_on_phi42,
    "phi42-u0": modes_with_u0,
    "phi43": size_on_phi43,
    "kdv-decay": decay_on_kdv,
    "step-kdv": step_on_kdv,
    "gt-kdv": waves_for_gt,
    "gradients": gradients,
    "lift": lift_on_phi41,
}


def rows(case: str, n: int, networks: Sequence[str], epochs: int, folder: Path) -> Iterator[dict[str, Any]]:
    """One row per number."""
    if case in ALONE:
        yield from ALONE[case](folder)
        return
    n //= 2 if case == "nse" else 1
    for label, eq in DATA[case].items():
        facts = {"case": case, "data": label, "points": eq.points, "J": eq.truncation, "samples": n}
        task = made(eq, n, folder)
        for quantity, value in figures(eq, task, folder / "runs"):
            yield facts | {"quantity": quantity, "value": value}
        if networks and not isinstance(eq, NSE):
            few = eq.replace(points=POINTS, truncation=min(eq.truncation, POINTS))
            task, facts = made(few, n, folder), facts | {"points": few.points, "J": few.truncation}
            for name in networks:
                value = trained(name, task, epochs, folder / "runs")
                yield facts | {"quantity": f"{name}, {epochs} epochs", "value": value}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[*DATA, *ALONE, []], default=[], metavar="CASE")
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
                table.append(printed(row))
    if given.out:
        pd.DataFrame(table).to_csv(given.out, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
