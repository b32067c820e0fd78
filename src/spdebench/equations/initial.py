"""Random initial data, drawn by the stream of the noise under another purpose: a function of (seed, sample)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from spdebench.grids import Grid
from spdebench.noise.stream import normal_pairs, sample_states


def eta(grid: Grid, seed: int, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
    """eta(x) = sum_{k=-10}^{10} a_k sin(2 pi k x)/(|k|+1)^2, a_k ~ N(0,1) (paper, section on nonsingular datasets).

    Pair k of the stream holds a_k and a_{-k}; a_0 multiplies 0.
    """
    k = torch.arange(1, 11, device=device)
    pairs = normal_pairs(sample_states(seed, "initial", samples, device), torch.zeros_like(k[:1]), k)[:, 0]
    amplitude = (pairs.real - pairs.imag) / (k + 1.0) ** 2
    return amplitude @ torch.sin(2 * math.pi * k[:, None] * grid.coordinates(0, device))


def perturbed(mean: Tensor, kappa: float, grid: Grid, seed: int, samples: Sequence[int]) -> Tensor:
    """mean(x) + kappa eta(x) for each sample."""
    if kappa == 0:
        return mean.expand(len(samples), *mean.shape).clone()
    return mean + kappa * eta(grid, seed, samples, mean.device)
