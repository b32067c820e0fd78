"""Findings about metrics: exchanged axes, and averages over batches."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import torch
from torch import Tensor

from spdebench.data import Dataset
from spdebench.equations import Phi41
from spdebench.errors import UserError
from spdebench.findings.base import Finding, FindingOnFile, FindingResult, Sources, declare
from spdebench.grids import Grid
from spdebench.metrics.evaluate import evaluate
from spdebench.solvers import simulate

SAMPLES, BATCH = 180, 20
"""The paper's test part, and the batch of the authors' evaluation."""
LAWS = ("acf", "corr", "sigw1")
TOP, COARSE = 8, 1
"""Modes that the predictions of these findings keep."""


def smoothed(grid: Grid, u: Tensor, top: int) -> Tensor:
    """u without its modes |k| > top: the prediction of a model that misses the fine scales."""
    c = grid.transform(u)
    c[..., top + 1 :] = 0
    return grid.inverse(c)


def scores(prediction: Tensor, truth: Tensor, grid: Grid, names: Sequence[str] = LAWS) -> dict[str, float]:
    """The values of these metrics by name."""
    found = evaluate(prediction, truth, grid, metrics=names, has_t0=False, resamples=0)
    return {name: float(found[name].value) for name in names}


def in_batches(prediction: Tensor, truth: Tensor, grid: Grid) -> dict[str, float]:
    """The mean of the scores of batches of 20."""
    pairs = zip(prediction.split(BATCH), truth.split(BATCH), strict=True)
    each = [scores(p, t, grid) for p, t in pairs if len(t) == BATCH]
    return {name: statistics.fmean(s[name] for s in each) for name in LAWS}


def _example(top: int = TOP) -> tuple[Tensor, Tensor, Grid]:
    """Predictions, truth and grid: solutions of phi41 without their modes |k| > top, and the solutions themselves."""
    eq = Phi41(sigma=1.0, truncation=128, edition="paper")
    u = simulate(eq, 0, range(SAMPLES)).u[:, 1:]
    return smoothed(eq.grid, u, top), u, eq.grid


# --- batches ------------------------------------------------------------------------------------------------------
def batches(sources: Sources) -> FindingResult:
    """mean_b M(V_b, U_b) over batches b of 20 against M(V, U) of all 180: a distance of laws has a bias O(n^-1/2)."""
    return _inflation(*_example())


def _inflation(prediction: Tensor, truth: Tensor, grid: Grid) -> FindingResult:
    """Each metric of laws over all samples and as a mean over batches, and the ratio of the two."""
    whole, parts = scores(prediction, truth, grid), in_batches(prediction, truth, grid)
    rows = [
        {"metric": name, f"all {len(truth)}": whole[name], f"batches of {BATCH}": parts[name],
         "ratio": parts[name] / whole[name]}
        for name in LAWS
    ]  # fmt: skip
    return FindingResult({f"{name}_ratio": parts[name] / whole[name] for name in LAWS}, rows)


def batches_on_file(sources: Sources, data: Dataset) -> FindingResult:
    """The same between the two halves of a file, which have one law and independent noise."""
    half = len(data) // 2 // BATCH * BATCH
    if half < 2 * BATCH:
        raise UserError(f"{data.path.name} has {len(data)} samples; this finding needs at least {4 * BATCH}")
    first, second = (torch.from_numpy(data.read("u", s, s + half)[:, 1:]) for s in (0, half))
    return _inflation(first, second, data.grid)


declare(
    Finding(
        name="batch-metrics",
        title="Averaging the distributional metrics over batches of 20 makes them two to three times as large.",
        sentence="For the same prediction (Phi41 without its modes |k| > 8) the average over batches of 20 is "
        "{acf_ratio:.1f} times the value on all 180 test samples for the ACF error, {corr_ratio:.1f} times "
        "for the cross-correlation error and {sigw1_ratio:.1f} times for Sig-W1.",
        follows="These metrics compare distributions; with few samples they measure the sampling error. Compute them "
        "once on the whole test part, print the value of an independent ensemble of the same size, and do "
        "not compare values from different batch sizes.",
        uses=("fresh data",),
        compute=batches,
        on_file=FindingOnFile(
            "Between the two halves of this file batches of 20 give {acf_ratio:.2g}, {corr_ratio:.2g} and "
            "{sigw1_ratio:.2g} times the value of the whole for ACF, cross-correlation and Sig-W1.",
            batches_on_file,
        ),
    )
)


# --- axes ---------------------------------------------------------------------------------------------------------
def axes(sources: Sources) -> FindingResult:
    """acf compares rho(u(s,x), u(t,x)), corr rho(u(t,x), u(t,y)): on (N, X, T) for (N, T, X) each is the other."""
    prediction, truth, grid = _example(COARSE)
    right = scores(prediction, truth, grid, LAWS[:2])
    other = Grid.unit(truth.shape[1])
    wrong = scores(prediction.transpose(1, 2), truth.transpose(1, 2), other, LAWS[:2])
    rows = [
        {"layout": "(sample, time, space)", "ACF error": right["acf"], "cross-correlation error": right["corr"]},
        {"layout": "(sample, space, time)", "ACF error": wrong["acf"], "cross-correlation error": wrong["corr"]},
    ]
    return FindingResult(
        {"acf": right["acf"], "corr": right["corr"], "acf_x": wrong["acf"], "corr_x": wrong["corr"]}, rows
    )


declare(
    Finding(
        name="exchanged-metrics",
        title="The released evaluation swaps the ACF error and the cross-correlation error for some models.",
        sentence="For the same prediction (Phi41 without its modes |k| > 1) the ACF error is {acf:.4f} and the "
        "cross-correlation error is {corr:.4f}. If time is the last axis, the same functions return "
        "{acf_x:.4f} and {corr_x:.4f}.",
        follows="FNO, NSPDE and WNO store time last, the other models store it first, and the evaluation expects it "
        "first, so a column of the table mixes two quantities. Name the axes of an array, check its shape on "
        "entry, and do not compare these two columns between models.",
        uses=("fresh data",),
        compute=axes,
    )
)
