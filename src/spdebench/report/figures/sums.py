"""Statistics of data that are read in batches, with standard errors by the delete-a-group jackknife.

Features are summed over G groups of samples (sample i is in group i mod G), so memory does not grow with n. Let m_g be
the number of samples in group g, h_g = n/m_g, theta the statistic and theta_g the statistic without group g. Then
(Busing, Meijer and van der Leeden 1999)

    s.e.^2 = (1/G) sum_g (h_g theta - (h_g - 1) theta_g - theta_J)^2 / (h_g - 1),
    theta_J = G theta - sum_g (1 - m_g/n) theta_g.

For n = G this is the usual jackknife, and for a mean it is s/sqrt(n).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from spdebench.data import Dataset

BATCH = 64
GROUPS = 32
_BUDGET = 1 << 25  # largest number of values stored per feature

Features = Callable[[np.ndarray], tuple[np.ndarray, ...]]
Statistic = Callable[[int, tuple[np.ndarray, ...]], np.ndarray]
"""A function of the number of samples and of the means of the features over them."""


def batches(dataset: Dataset, column: str) -> Iterator[np.ndarray]:
    """The rows of a column, `BATCH` at a time, float64."""
    for start in range(0, len(dataset), BATCH):
        yield dataset.read(column, start, start + BATCH).astype(np.float64)


@dataclass(frozen=True)
class GroupSums:
    """The number of samples in each group (G,) and the sums of each feature over each group (G, ...)."""

    counts: np.ndarray
    totals: tuple[np.ndarray, ...]

    def estimate(self, statistic: Statistic) -> tuple[np.ndarray, np.ndarray]:
        """The statistic and its standard error (nan for one sample)."""
        n, groups = int(self.counts.sum()), len(self.counts)
        whole = tuple(t.sum(0) for t in self.totals)
        value = np.asarray(statistic(n, tuple(t / n for t in whole)))
        if groups < 2:
            return value, np.full_like(value, np.nan)
        without = []
        for g, m in enumerate(self.counts):
            rest = tuple((w - t[g]) / (n - m) for w, t in zip(whole, self.totals, strict=True))
            without.append(statistic(n - int(m), rest))
        deleted = np.stack(without)
        shape = (groups,) + (1,) * value.ndim
        h = (n / self.counts).reshape(shape)
        centre = groups * value - ((1 - 1 / h) * deleted).sum(0)
        return value, np.sqrt((((h * value - (h - 1) * deleted) - centre) ** 2 / (h - 1)).mean(0))


def accumulate(rows: Iterable[np.ndarray], n: int, features: Features) -> GroupSums:
    """Sum the features (first axis: samples) of all n rows, which come in batches."""
    groups, start = 0, 0
    totals: list[np.ndarray] = []
    for batch in rows:
        found = features(batch)
        if not groups:
            groups = min(n, GROUPS, max(4, _BUDGET // max(f[0].size for f in found)))
            totals = [np.zeros((groups, *f.shape[1:])) for f in found]
        for total, feature in zip(totals, found, strict=True):
            for g in range(groups):
                total[g] += feature[(g - start) % groups :: groups].sum(0)
        start += len(batch)
    return GroupSums(np.bincount(np.arange(n) % groups), tuple(totals))


# --- pointwise moments --------------------------------------------------------------------------------------------
def moments(u: np.ndarray) -> tuple[np.ndarray, ...]:
    """The features u and u^2."""
    return u, u * u


def mean(n: int, means: tuple[np.ndarray, ...]) -> np.ndarray:
    """mean_n u, at each time and point."""
    return means[0]


def variance(n: int, means: tuple[np.ndarray, ...]) -> np.ndarray:
    """Var_n u, unbiased (0 for one sample), at each time and point."""
    out: np.ndarray = np.maximum(means[1] - means[0] ** 2, 0) * (n / max(n - 1, 1))
    return out


def mean_over_space(n: int, means: tuple[np.ndarray, ...]) -> np.ndarray:
    """mean_x mean_n u."""
    return _over_space(means[0])


def deviation(n: int, means: tuple[np.ndarray, ...]) -> np.ndarray:
    """mean_x std_n u: the pointwise standard deviation over the samples, averaged over space."""
    return _over_space(np.sqrt(variance(n, means)))


def energy(n: int, means: tuple[np.ndarray, ...]) -> np.ndarray:
    """mean_n mean_x u^2."""
    return _over_space(means[1])


def _over_space(values: np.ndarray) -> np.ndarray:
    out: np.ndarray = values.reshape(len(values), -1).mean(1)
    return out
