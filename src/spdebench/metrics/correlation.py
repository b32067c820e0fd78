"""Errors of the correlations between two times or two points: Pearson correlations across samples.

A pair of columns is used if the *truth* varies in both (std above 1e-6 max|U|). Where the truth varies but the
prediction is constant, the correlation of the prediction is set to 0, so that a model which predicts the mean is
penalised. No epsilon is added to denominators. V and U have the same noise, so a small value does not mean that their
laws agree; `floors` gives reference values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from spdebench.metrics.base import Measurement, Metric, require
from spdebench.metrics.fields import CONSTANT, Pair
from spdebench.metrics.scores import Kind

TILE_BYTES = {"cpu": 4 << 20}
"""Bytes of correlation matrices that are computed at a time; they are read again at once, from the cache."""


def standardise(columns: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Columns ``(.., N)`` centred and scaled to unit length, float32, and which of them vary; constant ones become 0.

    They are centred twice: first in the precision of the data, then in float32 to remove the rounding error.
    """
    centred = columns - columns.mean(-1, keepdim=True)
    centred = (centred / scale if scale > 0 else centred).float()
    centred -= centred.mean(-1, keepdim=True)
    length = torch.linalg.vector_norm(centred, dim=-1, keepdim=True)
    varies = length > CONSTANT * columns.shape[-1] ** 0.5
    centred *= torch.where(varies, 1 / length, 0.0)
    return centred, varies.squeeze(-1)


class _Tally:
    """Sums over pairs of columns, for every column of every batch. All tables are allocated at the start."""

    def __init__(self, pair: Pair, batches: int, columns: int, samples: bool) -> None:
        self.pair, self.samples = pair, samples
        self.rows = np.zeros((batches, columns))
        self.valid = np.zeros((batches, columns), bool)
        self.degenerate = 0
        self.influence = np.zeros(pair.samples_count)

    def add(self, start: int, v: Tensor, u: Tensor) -> None:
        """Add the batches from ``start`` on, as columns ``(batch, columns, N)``."""
        zu, varies = standardise(u, self.pair.scale_truth)
        zv, moves = standardise(v, self.pair.scale_prediction)
        zv *= varies.unsqueeze(-1)
        self.valid[start : start + len(u)] = varies.cpu().numpy()
        self.degenerate += int((varies & ~moves).sum())
        tile_bytes = TILE_BYTES.get(u.device.type, self.pair.chunk_bytes // 4)
        size = max(1, tile_bytes // (4 * u.shape[1] ** 2))
        for tile_u, tile_v in zip(zu.split(size), zv.split(size), strict=True):
            gap = torch.bmm(tile_u, tile_u.mT).baddbmm_(tile_v, tile_v.mT, alpha=-1)
            gap.diagonal(dim1=1, dim2=2).zero_()
            if self.samples:
                signs = gap.sign()
                self.influence += (influence(signs, tile_u) - influence(signs, tile_v)).cpu().numpy()
            self.rows[start : start + len(gap)] = gap.abs_().sum(-1).double().cpu().numpy()
            start += len(gap)


def influence(signs: Tensor, z: Tensor) -> Tensor:
    """Influence of sample n: sum_ij s_ij IF_n(rho_ij), IF_n(rho) = N z_in z_jn - rho N (z_in^2 + z_jn^2)/2."""
    products = torch.bmm(signs, z).mul_(z)
    row_sums = products.sum(-1, keepdim=True)  # sum_j s_ij rho_ij
    return (products - row_sums * z.square()).sum((0, 1), dtype=torch.float64) * z.shape[-1]


def _measure(tally: _Tally, along: int) -> Measurement:
    """Mean |rho_U - rho_V| over valid pairs; the curve sums over the axis ``along`` of (batch, columns)."""
    valid = tally.valid
    partners = np.where(valid, valid.sum(1, keepdims=True) - 1, 0)
    pairs = int(partners.sum())
    batches, columns = valid.shape
    details = {
        "valid_pair_fraction": pairs / (batches * columns * (columns - 1)),
        "degenerate_fraction": tally.degenerate / max(int(valid.sum()), 1),
    }
    if pairs == 0:
        return Measurement(float("nan"), details=details)
    value = float(tally.rows.sum() / pairs)
    with np.errstate(invalid="ignore"):
        curve = tally.rows.sum(along) / partners.sum(along)
    pseudo = value + tally.influence / pairs if tally.samples else None
    return Measurement(value, pseudo, "mean", curve, details)


@dataclass(frozen=True)
class AutoCorrelation(Metric, name="acf", title="correlation in time"):
    """(1/|P|) sum_{(i, s<t) in P} |rho(U_is, U_it) - rho(V_is, V_it)|, rho across samples.

    Source: the paper, "ACF Error", on t_1..t_T. P is the set of pairs of times at which the truth varies. The curve at
    t is the mean over all pairs that contain t. Per-sample values are jackknife pseudo-values.
    """

    kind: ClassVar[Kind] = "law"

    def refuses(self, pair: Pair) -> str | None:
        return None if pair.steps > 1 else "needs at least 2 scored frames, got 1"

    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement:
        tally = _Tally(pair, pair.space, pair.steps, samples)
        for where, v, u in pair.points(6 * pair.steps * pair.samples_count * 4):
            tally.add(where.start, v, u)
        return _measure(tally, along=0)


@dataclass(frozen=True)
class CrossCorrelation(Metric, name="corr", title="correlation in space"):
    """(1/|P|) sum_{(t, i<j) in P} |rho(U_it, U_jt) - rho(V_it, V_jt)|, rho across samples.

    Source: the paper, "Cross-Correlation Error", on t_1..t_T. P is the set of pairs of points at which the truth
    varies. On grids with more than ``max_points`` points a random ``subset`` of them (drawn with ``seed``) is used, and
    ``points`` in the result is its size. The curve is the value at each time. Per-sample values are jackknife
    pseudo-values.
    """

    max_points: int = 4096
    subset: int = 2048
    seed: int = 0
    kind: ClassVar[Kind] = "law"

    def __post_init__(self) -> None:
        require(2 <= self.subset <= self.max_points, f"corr: subset must lie in 2..max_points, got {self.subset}")

    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement:
        chosen: np.ndarray | None = None
        if pair.space > self.max_points:
            drawn = np.random.default_rng(self.seed).choice(pair.space, self.subset, replace=False)
            chosen = np.sort(drawn)
        columns = pair.space if chosen is None else len(chosen)
        tally = _Tally(pair, pair.steps, columns, samples)
        for where, v, u in pair.frames(8 * columns * pair.samples_count * 4, chosen):
            tally.add(where.start, v, u)
        out = _measure(tally, along=1)
        out.details.update(points=columns, all_points=pair.space)
        return out


def lag_profile(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    """r(l) = mean_{i,t} rho(t, t + l) of the prediction and of the truth, l = 0..T-1, over columns that vary."""
    steps = pair.steps
    sums = np.zeros((2, steps))
    counts = np.zeros((2, steps))
    for _, v, u in pair.points(6 * steps * pair.samples_count * 4):
        for side, (columns, scale) in enumerate(((v, pair.scale_prediction), (u, pair.scale_truth))):
            z, varies = standardise(columns, scale)
            both = (varies[:, :, None] & varies[:, None, :]).sum(0).cpu()
            total = torch.bmm(z, z.mT).sum(0).double().cpu()
            for k in range(steps):
                sums[side, k] += float(total.diagonal(k).sum())
                counts[side, k] += float(both.diagonal(k).sum())
    with np.errstate(invalid="ignore"):
        prediction, truth = sums / counts
    return prediction, truth
