"""Brownian increments by Levy's construction, the same path at every dyadic time step.

On [0,T] with ``steps = m 2^L`` steps, m odd: m independent increments of length T/m, then L times each increment D over
an interval of length h is split at its middle,

    D_left = D/2 + sqrt(h)/2 Z,     D_right = D/2 - sqrt(h)/2 Z,        Z ~ N(0,1) of the node (level, index),

so that the increments at ``steps`` are sums of those at ``2 steps``, to rounding. This needs as many normal numbers as
steps. Real and imaginary part of a mode are two independent Brownian motions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from spdebench.noise.stream import States, normal_pairs, split


def odd_part(steps: int) -> tuple[int, int]:
    """(m, L) with steps = m 2^L, m odd."""
    levels = (steps & -steps).bit_length() - 1
    return steps >> levels, levels


def increments(states: States, modes: Tensor, steps: int, horizon: float, first: int, count: int) -> Tensor:
    """The increments of all steps in ``count`` of the m base intervals, starting with the interval ``first``:
    (samples, count 2^L, modes), complex128.

    The factors 1/2 of D are included in the scales, which is exact for powers of two.
    """
    base, levels = odd_part(steps)
    nodes = torch.arange(first, first + count, device=states.device)
    path = normal_pairs(states, nodes, modes, math.sqrt(horizon / base) * 0.5**levels)
    for level in range(levels):
        width = 1 << level
        index = torch.arange(first * width, (first + count) * width, device=states.device)
        scale = math.sqrt(horizon / (base * width)) * 0.5 ** (levels - level)
        path = split(path, states, base * width + index, modes, scale)
    return path


def blocks(states: States, modes: Tensor, steps: int, horizon: float, budget: int, group: int = 1) -> Iterator[Tensor]:
    """The increments from t=0 to T, each summed over ``group`` steps, in time blocks of about ``budget`` numbers."""
    if steps % group:
        raise ValueError(f"{steps} steps cannot be grouped by {group}")
    base, levels = odd_part(steps)
    unit = group // math.gcd(group, 1 << levels)  # the fewest base intervals whose steps make whole groups
    per_interval = len(states) * modes.numel() << levels
    size = unit * max(1, min(base, budget // max(1, per_interval)) // unit)
    for first in range(0, base, size):
        path = increments(states, modes, steps, horizon, first, min(size, base - first))
        yield path if group == 1 else torch.unflatten(path, 1, (-1, group)).sum(2)
