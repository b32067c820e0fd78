"""Score predicted laws: proper scores, distances, moments and calibration, with intervals over inputs.

    energy_score          E|X - y| - E|X - X'|/2, L2 of space, mean over frames and true members; proper
    energy_score_path     the same in L2 of space and time
    energy_distance       2 E|X - Y| - E|X - X'| - E|Y - Y'|, zero in the mean for equal laws (it may be negative)
    energy_distance_path  the same in L2 of space and time
    crps                  the energy score of the value at a point, mean over points and frames
    mean_error            |E X - E Y| / |E Y| in L2 of space and time, mean over inputs
    std_error             (sum (std X - std Y)^2 / sum (std Y)^2)^{1/2} over inputs, frames and points
    sliced_w2             (mean over frames and random directions of W_2^2 of the projections)^{1/2}
    coverage_50, _90      share of truths inside the central interval of the members; ``ideal`` is its nominal value
                          (a truth that equals all members counts as inside, such as 0 at a stored Dirichlet end)
    rank_chi2             chi-square per degree of freedom of the rank histogram; ``details``: p-value and histogram

A finite number of members adds noise to mean_error, std_error and sliced_w2: compare them with those of an independent
ensemble of the true law of the same size.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.metrics.bootstrap import Interval, Statistic, interval
from spdebench.metrics.law import terms
from spdebench.metrics.law.members import Ensembles
from spdebench.metrics.scores import Score, Scores, reducer

SHARES = {"coverage_50": 0.5, "coverage_90": 0.9}
"""The wanted coverage of the central intervals."""
DIRECTIONS = 64
"""The number of random directions of the sliced distance."""
OF_TRUTH = ("mean_size", "spread")
"""Terms that depend on the truth only."""


def law_scores(
    prediction: Any,
    truth: Any,
    grid: Grid,
    *,
    has_t0: bool = True,
    times: Sequence[float] | np.ndarray | Tensor | None = None,
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 0,
    chunk_bytes: int | None = None,
    device: torch.device | str | None = None,
) -> Scores:
    """Score predicted members ``N m T X [Y Z]`` against true members ``N M T X [Y Z]`` of the same N inputs.

    One predicted member is a point forecast. Intervals are over inputs. ``chunk_bytes`` limits the working memory.
    Scores are computed on the device of the arrays, or on ``device``.
    """
    both = Ensembles(prediction, truth, grid, has_t0=has_t0, times=times, chunk_bytes=chunk_bytes, device=device)
    found, rank_counts, bad = _collect(both, seed)
    scores: dict[str, Score] = {}
    skipped: dict[str, str] = {}

    def add(name: str, samples: np.ndarray, ideal: float = 0.0) -> None:
        ends = _interval(reducer(samples, "mean"), len(samples), resamples, level, seed)
        value = float(np.mean(samples))
        scores[name] = Score(metric=name, value=value, kind="law", ideal=ideal, samples=samples, interval=ends)

    def add_ratio(name: str, error: np.ndarray, size: np.ndarray) -> None:
        statistic = _root_of_ratio(error, size)
        value = float(statistic(np.ones((1, len(error))))[0])
        ends = _interval(statistic, len(error), resamples, level, seed)
        scores[name] = Score(metric=name, value=value, kind="law", interval=ends)

    for name in ("energy_score", "energy_score_path", "crps"):
        add(name, found[name])
    if both.true > 1:
        for name in ("energy_distance", "energy_distance_path"):
            add(name, found[name])
        add_ratio("std_error", found["spread_error"], found["spread"])
    else:
        skipped |= dict.fromkeys(("energy_distance", "energy_distance_path", "std_error"), "needs two true members")
    with np.errstate(divide="ignore", invalid="ignore"):
        add("mean_error", np.sqrt(found["mean_error"] / found["mean_size"]))
    add_ratio("sliced_w2", found["sliced"], np.ones_like(found["sliced"]))
    if both.predicted > 1:
        for name, share in SHARES.items():
            i, j = terms.interval_ranks(both.predicted, share)
            add(name, found[name], ideal=(j - i) / (both.predicted + 1))
        scores["rank_chi2"] = _rank_score(rank_counts, finite=not bad)
    else:
        skipped |= dict.fromkeys((*SHARES, "rank_chi2"), "a point forecast has no intervals")
    settings = {
        "grid": dataclasses.asdict(grid),
        "frames": both.frames,
        "has_t0": has_t0,
        "dt": both.dt,
        "times_given": not both.unit_time,
        "members": both.predicted,
        "true_members": both.true,
        "resamples": resamples,
        "level": level,
        "seed": seed,
    }
    counts = {"samples": both.inputs, "nonfinite_samples": bad}
    return Scores(scores, counts, None, settings, skipped)


def skill(climatology: float, model: float, independent: float) -> float:
    """(climatology - model) / (climatology - independent): 0 for the climatology, 1 for the true law."""
    if not climatology > independent:
        raise UserError(
            f"the climatology scores {climatology:.4g}, the true law {independent:.4g}: skill is defined only if the "
            "true law has a smaller score"
        )
    return (climatology - model) / (climatology - independent)


def _collect(both: Ensembles, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray, int]:
    """The terms of all inputs, their rank histogram, and how many inputs have a prediction that is not finite."""
    parts: dict[str, list[Tensor]] = defaultdict(list)
    generator = torch.Generator().manual_seed(seed)
    # unit vectors of L2: the projection is the integral of the field times the direction
    directions = torch.randn(both.space, DIRECTIONS, generator=generator, dtype=torch.float64)
    directions = (directions / directions.norm(dim=0) * math.sqrt(both.cell)).to(both.device)
    draws = terms.RankDraws.draw(both.inputs, both.steps, both.space, both.predicted, both.true, generator)
    bad = 0
    for where, x, y in both.blocks():
        if not bool(torch.isfinite(y).all()):
            raise UserError(f"the truth is not finite in inputs {where.start} to {where.stop - 1}; generate it again")
        fine = torch.isfinite(x).flatten(1).all(1)
        bad += int((~fine).sum())
        for name, values in _terms(x, y, both, directions).items():
            parts[name].append((values if name in OF_TRUTH else torch.where(fine, values, math.inf)).cpu())
        parts["ranks"].append(draws.ranks(where, x, y).cpu())
    joined = {name: torch.cat(values) for name, values in parts.items()}
    counts = draws.histogram(joined.pop("ranks")).numpy()
    return {name: values.numpy() for name, values in joined.items()}, counts, bad


def _terms(x: Tensor, y: Tensor, both: Ensembles, directions: Tensor) -> dict[str, Tensor]:
    """The terms of all scores for a block of inputs, by name, each (n,)."""
    frame, path = terms.distances(x, y, both.cell, both.dt)
    error, size, spread_error, spread = terms.moment_errors(x, y)
    out = {
        "energy_score": frame.energy_score,
        "energy_score_path": path.energy_score,
        "energy_distance": frame.energy_distance,
        "energy_distance_path": path.energy_distance,
        "crps": terms.crps(x, y),
        "mean_error": error,
        "mean_size": size,
        "spread_error": spread_error,
        "spread": spread,
        "sliced": terms.sliced_squares(x, y, directions),
    }
    if x.shape[2] > 1:
        out |= {name: terms.coverage(x, y, share) for name, share in SHARES.items()}
    return out


def _root_of_ratio(error: np.ndarray, size: np.ndarray) -> Statistic:
    """W -> (sum_n w_n error_n / sum_n w_n size_n)^{1/2}."""

    def statistic(weights: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            out: np.ndarray = np.sqrt((weights @ error) / (weights @ size))
            return out

    return statistic


def _interval(statistic: Statistic, n: int, resamples: int, level: float, seed: int) -> Interval | None:
    """The interval of a statistic of n inputs; None without resamples."""
    return interval(statistic, n, resamples=resamples, level=level, seed=seed) if resamples else None


def _rank_score(counts: np.ndarray, *, finite: bool) -> Score:
    """The score of a rank histogram; inf with p-value 0 if some members are not finite: no rank among them counts."""
    expected = counts.sum() / len(counts)
    freedom = len(counts) - 1
    chi2 = float(((counts - expected) ** 2).sum() / expected) if finite else math.inf
    from scipy.special import gammaincc  # slow to import

    details = {"p_value": float(gammaincc(freedom / 2, chi2 / 2)), "histogram": counts.tolist(), "expected": expected}
    return Score(metric="rank_chi2", value=chi2 / freedom, kind="law", ideal=1.0, details=details)
