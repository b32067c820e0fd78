"""Random initial data, drawn from the same stream as the noise under another purpose: a function of (seed, sample)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from spdebench.grids import Grid
from spdebench.noise import Lattice, Seed, make_basis
from spdebench.noise.stream import normal_pairs, sample_states


def eta(grid: Grid, seed: Seed, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
    """eta(x) = sum_{k=-10}^{10} a_k sin(2 pi k x)/(|k|+1)^2, a_k ~ N(0,1) (paper, section on nonsingular datasets).

    x is the position divided by the length of the domain. Pair k of the stream is (a_k, a_{-k}); a_0 multiplies 0 and
    is not drawn. Returns (samples, points).
    """
    k = torch.arange(1, 11, device=device)
    pairs = normal_pairs(sample_states(seed, "initial", samples, device), torch.zeros_like(k[:1]), k)[:, 0]
    amplitude = (pairs.real - pairs.imag) / (k + 1.0) ** 2
    position = (grid.coordinates(0, device) - grid.lower[0]) / grid.lengths[0]
    return amplitude @ torch.sin(2 * math.pi * k[:, None] * position)


def plane_waves(grid: Grid, seed: Seed, samples: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
    """eta(x) = a_0 + sum_{|k_i| <= 5} a_k/(|k|^2 + 1) (sin + cos)(2 pi k.x/L), a ~ N(0,1) (paper, section on Phi^4_2).

    sin + cos is the real part of (1 - i) exp. The real part of pair m of the stream is a_k of the m-th vector k; the
    imaginary part of pair 0 is a_0. Returns (samples, points..).
    """
    k = torch.arange(-5, 6, dtype=torch.float64, device=device)
    squares = torch.stack(torch.meshgrid(*[k**2] * grid.dim, indexing="ij")).sum(0)
    modes = torch.arange(squares.numel(), device=device)
    pairs = normal_pairs(sample_states(seed, "initial", samples, device), torch.zeros_like(modes[:1]), modes)[:, 0]
    values = pairs.real.reshape(-1, *squares.shape) / (squares + 1) * complex(1, -1)
    for axis, lower, length in zip(range(grid.dim), grid.lower, grid.lengths, strict=True):
        phase = 2 * math.pi / length * (grid.coordinates(axis, device) - lower)[:, None] * k
        wave = torch.polar(torch.ones_like(phase), phase)
        values = torch.tensordot(values, wave, dims=([1], [1]))  # sum over k of this axis; its points become the last
    return values.real + pairs.imag[:, 0].reshape(-1, *[1] * grid.dim)


FIELD_TRUNCATION = 62
"""J of a Gaussian field: |k_i| <= 31, all modes that 64 points per axis resolve; the same on every grid."""


def gaussian_field(
    grid: Grid,
    eigenvalue: Callable[[Tensor], Tensor],
    seed: Seed,
    samples: Sequence[int],
    purpose: str = "initial",
    device: torch.device | str = "cpu",
) -> Tensor:
    """sum_q sqrt(lambda_q) a_q phi_q(x), a_q ~ N(0,1), lambda_q = eigenvalue(|kappa_q|^2): a Gaussian field of mean 0.

    phi_q are the Fourier (sine) functions of the domain without the constant, kappa_q their wave vectors. The pairs of
    normal numbers have the same order as those of the noise and come from the stream of ``purpose``. Returns
    (samples, points..).
    """
    basis = make_basis("fourier" if grid.periodic else "sine", FIELD_TRUNCATION, grid.dim)
    assert isinstance(basis, Lattice)
    unit = torch.tensor([(2 if grid.periodic else 1) * math.pi / length for length in grid.lengths])
    square = (basis.function_wavevectors * unit.to(torch.float64)).square().sum(-1)
    roots = torch.where(square > 0, eigenvalue(square), torch.zeros_like(square)).sqrt().to(device)
    pairs = normal_pairs(
        sample_states(seed, purpose, samples, device),
        torch.zeros(1, dtype=torch.int64, device=device),
        basis.modes.to(device),
    )[:, 0]
    torch.view_as_real(pairs).mul_(roots)
    return basis.physical(pairs, grid)


def perturbed(mean: Tensor, kappa: float, grid: Grid, seed: Seed, samples: Sequence[int]) -> Tensor:
    """mean(x) + kappa eta(x) for each sample: `eta` in one dimension, `plane_waves` in more."""
    if kappa == 0:
        return mean.expand(len(samples), *mean.shape).clone()
    return mean + kappa * (eta if grid.dim == 1 else plane_waves)(grid, seed, samples, mean.device)
