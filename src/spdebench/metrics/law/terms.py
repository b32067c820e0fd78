"""The terms of law scores for a block of inputs: X are predicted members (n, T, m, D), Y true ones (n, T, M, D).

The estimators of energy scores, energy distances and CRPS are unbiased in the number of members: pairs of a member with
itself are left out. Errors of means and standard deviations and the sliced distance are larger for few members. One
predicted member is a law concentrated in a point, whose own spread E|X - X'| is zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class MeanDistances:
    """E|X - Y|, E|X - X'| and E|Y - Y'| of each input, (n,), in one norm; the last is NaN for a single truth."""

    between: Tensor
    predicted: Tensor
    true: Tensor

    @property
    def energy_score(self) -> Tensor:
        return self.between - 0.5 * self.predicted

    @property
    def energy_distance(self) -> Tensor:
        return 2 * self.between - self.predicted - self.true


def distances(x: Tensor, y: Tensor, cell: float, dt: float) -> tuple[MeanDistances, MeanDistances]:
    """The mean distances in L2 of space, averaged over frames, and those in L2 of space and time.

    |u|_frame = (cell sum_x u^2)^{1/2},     |u|_path = (dt cell sum_t sum_x u^2)^{1/2}.
    """
    tables = [_squares(a, b) * cell for a, b in ((x, y), (x, x), (y, y))]
    frame = [table.sqrt().mean(1) for table in tables]
    path = [(dt * table.sum(1)).sqrt() for table in tables]
    return _averaged(frame), _averaged(path)


def _squares(a: Tensor, b: Tensor) -> Tensor:
    """sum_x (a_j - b_k)^2 of all pairs: (n, T, j, k); without the cancellation of |a|^2 - 2 a.b + |b|^2."""
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square()


def _averaged(tables: list[Tensor]) -> MeanDistances:
    between, predicted, true = tables
    return MeanDistances(between.mean((1, 2)), _without_diagonal(predicted, 0.0), _without_diagonal(true, math.nan))


def _without_diagonal(table: Tensor, alone: float) -> Tensor:
    """The mean over pairs of different members; ``alone`` if there is one member."""
    m = table.shape[-1]
    if m == 1:
        return torch.full_like(table[:, 0, 0], alone)
    return table.sum((1, 2)) / (m * (m - 1))


def crps(x: Tensor, y: Tensor) -> Tensor:
    """mean over t, x and truths of  E|X - y| - E|X - X'|/2  at a point (the fair estimator): (n,).

    With sorted members E|X - X'| = 2/(m(m-1)) sum_j (2j - m - 1) x_(j).
    """
    m = x.shape[2]
    total = torch.zeros(len(x), dtype=x.dtype, device=x.device)
    for truth in y.unbind(2):
        total += (x - truth[:, :, None]).abs().mean((1, 2, 3))
    total /= y.shape[2]
    if m == 1:
        return total
    weights = torch.arange(1 - m, m, 2, dtype=x.dtype, device=x.device)
    spread = 2 / (m * (m - 1)) * torch.einsum("ntmd,m->ntd", x.sort(2).values, weights)
    return total - 0.5 * spread.mean((1, 2))


def moment_errors(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """sum |mean X - mean Y|^2, sum |mean Y|^2, sum (std X - std Y)^2 and sum (std Y)^2 over t and x, each (n,).

    Standard deviations have m - 1 in the denominator; that of a single member is zero.
    """
    mean_x, mean_y = x.mean(2), y.mean(2)
    std_x = x.std(2) if x.shape[2] > 1 else torch.zeros_like(mean_x)
    std_y = y.std(2) if y.shape[2] > 1 else torch.full_like(mean_y, math.nan)
    pairs = ((mean_x - mean_y), mean_y, (std_x - std_y), std_y)
    error, size, spread_error, spread = (field.square().sum((1, 2)) for field in pairs)
    return error, size, spread_error, spread


def interval_ranks(members: int, share: float) -> tuple[int, int]:
    """Ranks i < j of the central interval [x_(i), x_(j)] of m members whose nominal coverage (j - i)/(m + 1) is
    nearest to ``share``; a new draw of the same law, if it has no atoms, lies in it with exactly that probability."""
    i = min(max(1, round((1 - share) / 2 * (members + 1))), members // 2)
    return i, members + 1 - i


def coverage(x: Tensor, y: Tensor, share: float) -> Tensor:
    """The share of points, frames and truths inside the central interval of the members: (n,)."""
    i, j = interval_ranks(x.shape[2], share)
    ordered = x.sort(2).values
    low, high = ordered[:, :, i - 1, None], ordered[:, :, j - 1, None]
    return ((y >= low) & (y <= high)).double().mean((1, 2, 3))


MOST_BINS = 13
"""The most bins of a rank histogram."""


@dataclass(frozen=True)
class RankDraws:
    """One random truth, frame and point for each input, and a uniform number that breaks ties.

    Only one value of each input is ranked, because other values are not independent of it. The first ``used`` members
    take part, a number for which ``bins`` divides the number of possible ranks.
    """

    frame: Tensor
    point: Tensor
    truth: Tensor
    tie: Tensor
    used: int
    bins: int

    @staticmethod
    def draw(n: int, steps: int, space: int, members: int, truths: int, generator: torch.Generator) -> RankDraws:
        frame, point, truth = (torch.randint(high, (n,), generator=generator) for high in (steps, space, truths))
        tie = torch.rand(n, generator=generator, dtype=torch.float64)
        bins = min(MOST_BINS, members + 1)
        return RankDraws(frame, point, truth, tie, bins * ((members + 1) // bins) - 1, bins)

    def ranks(self, where: slice, x: Tensor, y: Tensor) -> Tensor:
        """The rank 0..used of the true value among the members, ties at random, for the inputs of a block."""
        rows = torch.arange(len(x), device=x.device)
        frame, point, truth = (index[where].to(x.device) for index in (self.frame, self.point, self.truth))
        value, members = y[rows, frame, truth, point], x[rows, frame, :, point][:, : self.used]
        below, same = (members < value[:, None]).sum(1), (members == value[:, None]).sum(1)
        return below + torch.floor(self.tie[where].to(x.device) * (same + 1)).long()

    def histogram(self, ranks: Tensor) -> Tensor:
        """Counts of the ranks in bins of equal width."""
        return torch.bincount(ranks * self.bins // (self.used + 1), minlength=self.bins)


def sliced_squares(x: Tensor, y: Tensor, directions: Tensor) -> Tensor:
    """mean over frames and directions of W_2^2 between the projected members, (n,): ``directions`` is (D, P)."""
    a, b = ((members @ directions).sort(2).values for members in (x, y))  # (n, T, m, P)
    m, k = a.shape[2], b.shape[2]
    steps = torch.unique(torch.cat([torch.arange(1, m + 1) * k, torch.arange(1, k + 1) * m]))  # quantiles times m k
    widths = torch.diff(steps, prepend=torch.zeros(1, dtype=steps.dtype)).double() / (m * k)
    at_a, at_b = ((steps + each - 1) // each - 1 for each in (k, m))
    gaps = (a[:, :, at_a.to(a.device)] - b[:, :, at_b.to(b.device)]).square()
    return torch.einsum("ntqp,q->ntp", gaps, widths.to(gaps.device)).mean((1, 2))
