"""The time of the paper's metrics against a straightforward implementation: loops over samples, points and times.

The loops below write the formulas down with NumPy, so each also checks the value of its metric. Both sides use one
thread; start Python with OMP_NUM_THREADS=1 so that NumPy does too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from spdebench.grids import Grid
from spdebench.metrics.evaluate import PAPER, evaluate
from spdebench.timing import best_of, threads

Case = tuple[tuple[int, ...], tuple[int, ...]]  # shape of the arrays, points of the grid

CASES: tuple[Case, ...] = (((180, 51, 128), (128,)), ((180, 101, 16, 16), (16, 16)))
DEPTH = 5


def loop_rel_l2(v: np.ndarray, u: np.ndarray) -> float:
    return float(np.mean([np.linalg.norm(a - b) / np.linalg.norm(b) for a, b in zip(v, u, strict=True)]))


def loop_l2(v: np.ndarray, u: np.ndarray) -> float:
    return float(np.mean([np.linalg.norm(a - b) for a, b in zip(v, u, strict=True)]))


def loop_mse(v: np.ndarray, u: np.ndarray) -> float:
    return float(np.mean([np.mean((a - b) ** 2) for a, b in zip(v, u, strict=True)]))


def loop_rmse(v: np.ndarray, u: np.ndarray) -> float:
    return loop_mse(v, u) ** 0.5


def loop_w12(v: np.ndarray, u: np.ndarray) -> float:
    axes = tuple(range(1, v.ndim - 1))
    numbers = np.meshgrid(*[np.fft.fftfreq(n, 1 / n) for n in v.shape[2:]], indexing="ij")
    weight = 1 + sum(k**2 for k in numbers)
    ratios = []
    for a, b in zip(v, u, strict=True):
        top, bottom = np.fft.fftn(a - b, axes=axes), np.fft.fftn(b, axes=axes)
        ratios.append(np.sqrt(np.sum(weight * np.abs(top) ** 2) / np.sum(weight * np.abs(bottom) ** 2)))
    return float(np.mean(ratios))


def loop_acf(v: np.ndarray, u: np.ndarray) -> float:
    v, u = (a.reshape(*a.shape[:2], -1) for a in (v, u))
    upper = np.triu_indices(v.shape[1], 1)
    gaps = [np.abs(np.corrcoef(v[:, :, i].T) - np.corrcoef(u[:, :, i].T))[upper].mean() for i in range(v.shape[2])]
    return float(np.mean(gaps))


def loop_corr(v: np.ndarray, u: np.ndarray) -> float:
    v, u = (a.reshape(*a.shape[:2], -1) for a in (v, u))
    upper = np.triu_indices(v.shape[2], 1)
    gaps = [np.abs(np.corrcoef(v[:, t].T) - np.corrcoef(u[:, t].T))[upper].mean() for t in range(v.shape[1])]
    return float(np.mean(gaps))


def loop_sigw1(v: np.ndarray, u: np.ndarray) -> float:
    v, u = (a.reshape(*a.shape[:2], -1) for a in (v, u))
    times = np.broadcast_to(np.linspace(0, 1, v.shape[1], dtype=v.dtype), v.shape[:2])
    norms = []
    for i in range(v.shape[2]):
        mean_v, mean_u = (_expected_signature(np.stack([times, a[:, :, i]], axis=2)) for a in (v, u))
        norms.append(np.linalg.norm(mean_v - mean_u))
    return float(np.mean(norms))


def _expected_signature(paths: np.ndarray) -> np.ndarray:
    """Mean over paths ``(N, length, 2)`` of the product of the exponentials of their increments (Chen)."""
    n = len(paths)
    state = [np.ones((n, 1), paths.dtype)] + [np.zeros((n, 2**k), paths.dtype) for k in range(1, DEPTH + 1)]
    for step in np.diff(paths, axis=1).transpose(1, 0, 2):
        piece = [np.ones((n, 1), paths.dtype)]
        for k in range(1, DEPTH + 1):
            piece.append((piece[-1][:, :, None] * step[:, None, :] / k).reshape(n, -1))
        products = [
            [(state[j][:, :, None] * piece[k - j][:, None, :]).reshape(n, -1) for j in range(k + 1)]
            for k in range(DEPTH + 1)
        ]
        state = [np.sum(level, axis=0) for level in products]
    return np.concatenate(state[1:], axis=1).mean(0)


LOOPS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "rel_l2": loop_rel_l2,
    "l2_paper": loop_l2,
    "mse": loop_mse,
    "rmse": loop_rmse,
    "w12_paper": loop_w12,
    "acf": loop_acf,
    "corr": loop_corr,
    "sigw1": loop_sigw1,
}


def ensemble(shape: tuple[int, ...], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A rough truth (Brownian in time, correlated in space) and a prediction with a small error, float32."""
    rng = np.random.default_rng(seed)
    steps = rng.standard_normal(shape)
    for axis in range(2, len(shape)):
        steps = steps + np.roll(steps, 1, axis)
    truth = 1 + np.cumsum(steps, axis=1) / shape[1] ** 0.5
    prediction = 0.95 * truth + 0.05 * rng.standard_normal(shape)
    return prediction.astype(np.float32), truth.astype(np.float32)


def bench(cases: tuple[Case, ...] = CASES, repeats: int = 3) -> list[dict[str, Any]]:
    """Rows: case, metric (or ``all``), milliseconds of ours and of the loops, their ratio, and both values.

    ``all`` is one `evaluate` of the paper's metrics (values and curves, no intervals) against the sum of the loops.
    The signature takes most of that sum. Our times of the norms include the check of both arrays.
    """
    with threads(1):
        return [row for shape, points in cases for row in _case(shape, points, repeats)]


def _case(shape: tuple[int, ...], points: tuple[int, ...], repeats: int) -> list[dict[str, Any]]:
    v, u = ensemble(shape)
    case = f"N={shape[0]} {'x'.join(map(str, points))}x{shape[1] - 1}"
    ours = partial(evaluate, v, u, Grid.unit(points), resamples=0)
    rows, total = [], 0.0
    for name in PAPER:
        scores, seconds = best_of(partial(ours, metrics=name), repeats)
        value, loop = best_of(partial(LOOPS[name], v[:, 1:], u[:, 1:]), 1)
        total += loop
        rows.append(_row(case, name, seconds, loop, scores[name].value, value))
    _, seconds = best_of(partial(ours, metrics="paper"), repeats)
    return [*rows, _row(case, "all", seconds, total, None, None)]


def _row(case: str, metric: str, ours: float, loop: float, value: float | None, check: float | None) -> dict[str, Any]:
    return {
        "case": case,
        "metric": metric,
        "ours_ms": ours * 1e3,
        "loop_ms": loop * 1e3,
        "ratio": loop / ours,
        "value": value,
        "loop_value": check,
    }
