"""New random noise in place of the noise modes that a model does not see.

    fill(t_n, x) = sqrt(dt) sum_q g_{n,q} sqrt(lambda_q) e_q(x),    q kept by truncation J and not by K,   g ~ N(0, 1)

With lambda_q = 1, unit variance for each basis function, this is the source of randomness in the input of a network,
which need not know the spectrum of the noise. With the true eigenvalues it has the law of dw - dw_seen.

The numbers g are a function of (seed, sample, draw) or of (seed, epoch, sample, draw), whatever the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from spdebench.grids import Grid
from spdebench.noise.stream import normal_pairs, numbered_states, sample_states
from spdebench.noise.wiener import Wiener

MOST_NUMBERS = 1 << 24
"""Pairs of normal numbers, or values on the grid, that are drawn at a time: at most 256 MiB."""


def fill_states(
    seed: int, samples: Sequence[int] | Tensor, draw: int, device: torch.device | str, epoch: int | None = None
) -> Tensor:
    """The state of draw 0, 1, .. for each sample: (samples,), int64; with ``epoch`` each epoch has its own states."""
    if epoch is None:
        return numbered_states(sample_states(seed, "fill", samples, device), draw)
    return numbered_states(numbered_states(sample_states(seed, "fill epoch", samples, device), epoch), draw)


@dataclass(frozen=True)
class UnseenNoise:
    """The part of a Wiener process that truncation ``seen`` does not keep, at the points of a model's input.

    ``stored`` maps values on the grid of ``wiener`` to these points; None if they are the same.
    """

    wiener: Wiener
    seen: int
    stored: Callable[[Tensor], Tensor] | None = None

    @property
    def functions(self) -> int:
        """The number of functions that are not seen."""
        return int(self._weights.count_nonzero())

    @cached_property
    def _weights(self) -> Tensor:
        """sqrt(lambda) of the functions that are not seen, 0 for all others: (pairs, 2)."""
        basis = self.wiener.basis
        return self.wiener.roots * ((basis.index > 0) & ~basis.kept_by(self.seen))

    def series(self, z: Tensor) -> Tensor:
        """The unseen part of the series with pairs z (.., pairs) of amplitudes, at the points: (.., X..)."""
        weighted = torch.view_as_complex(torch.view_as_real(z) * self._weights.to(z.device))
        field = self.wiener.physical(weighted)
        return field if self.stored is None else self.stored(field)

    def power(self, grid: Grid) -> Tensor:
        """E|F[dW](k)|^2 / dt in the modes of ``grid``, whose points are those of the series."""
        pairs = self.wiener.basis.pairs
        unit = torch.eye(2 * pairs, dtype=torch.float64).unflatten(1, (pairs, 2))
        return grid.transform(self.series(torch.view_as_complex(unit))).abs().square().sum(0)

    def draw(self, states: Tensor, intervals: int, dt: float) -> Tensor:
        """Independent increments over intervals of length dt: float32, (states, intervals + 1, X..), 0 at t_0."""
        modes = self.wiener.basis.modes.to(states.device)
        size = max(1, MOST_NUMBERS // (intervals * max(len(modes), math.prod(self.wiener.grid.points))))
        nodes = torch.arange(intervals, device=states.device)
        batches = states.split(size)
        increments = torch.cat([self.series(normal_pairs(s, nodes, modes, math.sqrt(dt))).float() for s in batches])
        return torch.cat((torch.zeros_like(increments[:, :1]), increments), dim=1)
