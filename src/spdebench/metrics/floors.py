"""Reference scores that help to read the score of a model.

- ``independent``: the truth against an independent ensemble with the same law. A metric that compares laws gives a
  perfect model with its own noise this score; for a samplewise metric it is the score of the right law with wrong
  noise.
- ``mean_field``: the score of predicting the mean of the truth for every sample.
- ``converged``: the distance of the data to the converged solution for the same noise. A model with a smaller error
  than this has fitted the numerical scheme; the number no longer tells us about the SPDE.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.metrics.base import Metric
from spdebench.metrics.evaluate import Choice, evaluate
from spdebench.metrics.fields import Pair, as_array
from spdebench.metrics.scores import Scores


@dataclass(frozen=True)
class Floors:
    """The three reference scores; ``samples`` is the size of each ensemble in ``independent`` (N // 2 for halves)."""

    independent: Scores
    mean_field: Scores
    converged: Scores | None
    samples: int

    def rows(self) -> list[dict[str, Any]]:
        """One row per metric with its three reference scores (None where there is none)."""
        names = dict.fromkeys([*self.independent, *self.mean_field])
        marks = {"independent": self.independent, "mean_field": self.mean_field, "converged": self.converged}
        return [
            {"metric": name, **{k: s[name].value if s and name in s else None for k, s in marks.items()}}
            for name in names
        ]


def floors(
    truth: Any,
    grid: Grid,
    *,
    independent: Any = None,
    converged: Any = None,
    metrics: Choice | Iterable[Choice] | None = None,
    has_t0: bool = True,
    times: Sequence[float] | np.ndarray | Tensor | None = None,
    resamples: int = 0,
    seed: int = 0,
    chunk_bytes: int | None = None,
) -> Floors:
    """The reference scores for a test set ``truth`` (``N T X [Y Z]``).

    ``independent`` is another ensemble with the same law and size. Without it the truth is split at random into halves;
    the score is then that of N/2 samples, which is larger than that of N samples by about sqrt(2). ``converged`` is a
    refined solution for the same noise on the same frames and points.
    """
    options: dict[str, Any] = {
        "metrics": metrics if metrics is None or isinstance(metrics, str | Metric) else list(metrics),
        "has_t0": has_t0,
        "times": times,
        "resamples": resamples,
        "seed": seed,
        "chunk_bytes": chunk_bytes,
    }
    pair = Pair(truth, truth, grid, has_t0=has_t0, times=times, chunk_bytes=chunk_bytes)
    mean = pair.mean_truth.to(pair.dtype).reshape(1, pair.frames_count, *grid.points)
    array = as_array(truth, "truth")
    collapsed = evaluate(mean.expand(pair.samples_count, *mean.shape[1:]), array, grid, **options)
    refined = None if converged is None else evaluate(array, converged, grid, **options)
    if independent is not None:
        return Floors(evaluate(independent, array, grid, **options), collapsed, refined, pair.samples_count)
    left, right = _halves(pair.samples_count, seed)
    apart = evaluate(_rows_of(array, left), _rows_of(array, right), grid, **options)
    return Floors(apart, collapsed, refined, len(left))


def _halves(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the samples in two random halves of equal size."""
    if n < 6:
        raise UserError(f"floors: at least 6 samples are needed to split into halves, got {n}; or pass independent=")
    order = np.random.default_rng(seed).permutation(n)
    half = n // 2
    return np.sort(order[:half]), np.sort(order[half : 2 * half])


def _rows_of(array: np.ndarray | Tensor, chosen: np.ndarray) -> np.ndarray | Tensor:
    """The chosen rows of an array or of a tensor on any device."""
    index = torch.from_numpy(chosen).to(array.device) if isinstance(array, Tensor) else chosen
    out: np.ndarray | Tensor = array[index]
    return out
