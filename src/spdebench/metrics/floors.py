"""How low can a score go, and what does knowing nothing score? Marks beside which a score means something.

- ``independent``: truth against an independent ensemble of the same law. A metric of laws cannot tell a perfect model
  with its own noise from this; a samplewise metric shows here what a wrong noise path costs.
- ``mean_field``: every sample predicted by the mean of the truth; what a collapsed model scores.
- ``converged``: the solver's own distance to the converged solution on the same noise. A model that scores below it
  has learned the scheme, not the equation.
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
    """Scores of the three marks; ``samples`` is the size of each ensemble in ``independent`` (halves: N // 2)."""

    independent: Scores
    mean_field: Scores
    converged: Scores | None
    samples: int

    def rows(self) -> list[dict[str, Any]]:
        """One row a metric: its three marks (None where there is none)."""
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
    """The marks for a test set ``truth`` (``N T X [Y Z]``).

    ``independent`` is another ensemble of the same law and size; without it the truth is split at random into halves,
    and the floor is that of N/2 samples (larger than at N, by about sqrt(2)). ``converged`` is a refined solution for
    the same noise on the same frames and points.
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
    apart = evaluate(_take(array, left), _take(array, right), grid, **options)
    return Floors(apart, collapsed, refined, len(left))


def _halves(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if n < 6:
        raise UserError(f"floors: at least 6 samples are needed to split into halves, got {n}; or pass independent=")
    order = np.random.default_rng(seed).permutation(n)
    half = n // 2
    return np.sort(order[:half]), np.sort(order[half : 2 * half])


def _take(array: np.ndarray | Tensor, chosen: np.ndarray) -> np.ndarray | Tensor:
    index = torch.from_numpy(chosen).to(array.device) if isinstance(array, Tensor) else chosen
    out: np.ndarray | Tensor = array[index]
    return out
