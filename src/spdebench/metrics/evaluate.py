"""Score a prediction with several metrics: the whole test set at once, frames t_1..t_T, in physical units."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.metrics.base import METRICS, Measurement, Metric
from spdebench.metrics.bootstrap import interval
from spdebench.metrics.fields import Pair
from spdebench.metrics.pointwise import mean_without_nan, ratio
from spdebench.metrics.scores import Score, Scores, reducer

PAPER = ("rel_l2", "l2_paper", "mse", "rmse", "w12_paper", "acf", "corr", "sigw1")
DEFAULT = (*PAPER, "l2", "nrmse", "w12", "sigw1_std", "spectrum", "std_ratio")

Choice = str | Metric


def choose(metrics: Choice | Iterable[Choice] | None) -> tuple[list[Metric], bool]:
    """The metrics for names, instances or a group (``paper``, ``default``, ``all``), and whether it was a group."""
    groups = {"paper": PAPER, "default": DEFAULT, "all": tuple(METRICS)}
    if metrics is None:
        metrics = "default"
    if isinstance(metrics, str) and metrics in groups:
        return [METRICS[name]() for name in groups[metrics]], True
    chosen = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    if not chosen:
        raise UserError("no metric was given; name at least one, or use paper, default or all")
    return [m if isinstance(m, Metric) else METRICS[m]() for m in chosen], False


def evaluate(
    prediction: Any,
    truth: Any,
    grid: Grid,
    *,
    metrics: Choice | Iterable[Choice] | None = None,
    has_t0: bool = True,
    times: Sequence[float] | np.ndarray | torch.Tensor | None = None,
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 0,
    chunk_bytes: int | None = None,
) -> Scores:
    """Score a prediction against the truth: arrays ``N T X [Y Z]`` from any framework, in physical units.

    ``metrics``: names, `Metric` instances or a group; by default the group ``default``. ``times`` of the frames give
    the dt of absolute norms; without them the frames fill [0, 1]. ``resamples=0`` omits intervals and pseudo-values,
    which is faster. ``chunk_bytes`` limits the working memory (default 32 MiB, on a GPU 1 GiB) and changes no value.
    """
    chosen, group = choose(metrics)
    pair = Pair(prediction, truth, grid, has_t0=has_t0, times=times, chunk_bytes=chunk_bytes)
    scores: dict[str, Score] = {}
    skipped: dict[str, str] = {}
    for metric in chosen:
        reason = metric.refuses(pair)
        if reason is None:
            scores[metric.label] = _score(metric, pair, resamples, level, seed)
        elif group:
            skipped[metric.label] = reason
        else:
            raise UserError(f"metric '{metric.name}' {reason}")
    counts = {"samples": pair.samples_count, "nonfinite_samples": int(pair.nonfinite.sum())}
    settings = {
        "grid": dataclasses.asdict(grid),
        "frames": pair.frames_count,
        "has_t0": has_t0,
        "dt": pair.dt,
        "times_given": not pair.unit_time,
        "dtype": str(pair.dtype).removeprefix("torch."),
        "resamples": resamples,
        "level": level,
        "seed": seed,
    }
    return Scores(scores, counts, _initial_error(pair), settings, skipped)


def _score(metric: Metric, pair: Pair, resamples: int, level: float, seed: int) -> Score:
    """The value of one metric, with its interval if ``resamples`` is positive."""
    if metric.kind == "law" and not pair.finite:
        found = Measurement(float("inf"))
    else:
        found = _measurement(metric, metric.measure(pair, samples=resamples > 0))
    ends = None
    if resamples and (found.resample or found.samples is not None):
        linear = metric.kind == "law" and found.resample is None
        statistic = found.resample or reducer(_not_none(found.samples), found.reduction)
        ends = interval(statistic, pair.samples_count, resamples=resamples, level=level, seed=seed, linear=linear)
    return Score(
        metric=metric.label,
        value=found.value,
        kind=metric.kind,
        ideal=metric.ideal,
        samples=found.samples,
        reduction=found.reduction,
        curve=found.curve,
        interval=ends,
        details=found.details,
    )


def _measurement(metric: Metric, found: Any) -> Measurement:
    """What a metric returned, or a `Measurement` of the plain number that it returned."""
    if isinstance(found, Measurement):
        return found
    try:
        return Measurement(float(found))
    except (TypeError, ValueError, RuntimeError):
        got = f"{type(found).__name__} of shape {tuple(found.shape)}" if hasattr(found, "shape") else repr(found)
        raise UserError(f"metric '{metric.name}' must return a number or a Measurement, it returned {got}") from None


def _not_none(samples: np.ndarray | None) -> np.ndarray:
    assert samples is not None
    return samples


def _initial_error(pair: Pair) -> float | None:
    """(1/N) sum_n ||e(t_0)|| / ||U(t_0)|| without the samples that have u_0 = 0."""
    if not pair.has_t0:
        return None
    v, u = (field.double() for field in pair.frame_zero())
    error = np.nan_to_num((v - u).square().sum(1).cpu().numpy(), nan=np.inf, posinf=np.inf)
    return float(mean_without_nan(np.sqrt(ratio(error, u.square().sum(1).cpu().numpy()))))
