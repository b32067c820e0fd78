"""Wave vectors k in Z^d: half lattices, their numbers in the stream, and the projection of a series onto a grid.

On N points per axis exp(2 pi i k.x) equals the mode k mod N, and sin(pi k x) equals +-sin(pi m x), m = 0..N-1. A grid
coefficient of a series is therefore the sum over the amplitudes of all functions that alias onto it. `GridProjection`
keeps this sum as layers, each of which gathers one amplitude for every coefficient and multiplies it: one layer if
nothing aliases, and otherwise as many layers as functions alias onto one coefficient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from spdebench import accel
from spdebench.grids import Grid

BITS = 21
"""Bits of a component in a packed vector: |k_i| < 2^20, three of them in 63 bits."""


def half_lattice(top: int, dim: int) -> Tensor:
    """One of k and -k for all |k_i| <= top, the zero vector first: (vectors, dim).

    It is the one whose last non-zero component is positive: the half that a real Fourier transform stores.
    """
    axis = torch.arange(-top, top + 1)
    k = torch.cartesian_prod(*([axis] * dim)).reshape(-1, dim)
    sign = torch.zeros(len(k), dtype=torch.int64)
    for component in reversed(k.unbind(1)):
        sign = torch.where(sign == 0, component.sign(), sign)
    return torch.cat((torch.zeros(1, dim, dtype=torch.int64), k[sign > 0]))


def positive_lattice(top: int, dim: int) -> Tensor:
    """All k with k_i = 1..top, two neighbours k_d = 2m+1, 2m+2 per pair: (pairs, 2, dim); 0 where 2m+2 > top."""
    axes = [torch.arange(1, top + 1)] * (dim - 1) + [torch.arange(1, top + 1, 2)]
    first = torch.cartesian_prod(*axes).reshape(-1, dim)
    second = first.clone()
    second[:, -1] += 1
    second[second[:, -1] > top] = 0
    return torch.stack((first, second), dim=1)


def pack(k: Tensor) -> Tensor:
    """k (..., dim) as one integer, which does not depend on the lattice; in one dimension k itself (k >= 0)."""
    number = torch.zeros(k.shape[:-1], dtype=torch.int64)
    for component in k.unbind(-1):
        number = (number << BITS) + component % (1 << BITS)
    return number


@dataclass(frozen=True)
class Layer:
    """coefficient[target_t] += factor_t amplitude[source_t] for all t; without ``target``, for all coefficients."""

    source: Tensor
    factor: Tensor  # one number per amplitude, or two, for the real and the imaginary part
    target: Tensor | None = None

    def gather(self, amplitudes: Tensor) -> Tensor:
        """factor_t amplitude[source_t] for all t: (.., amplitudes) -> (.., t)."""
        if amplitudes.is_cuda and amplitudes.is_complex() and (kernels := accel.module("lattice")):
            out: Tensor = kernels.gather(amplitudes, self.source, self.factor)
            return out
        values = torch.gather(amplitudes, -1, self.source.expand(*amplitudes.shape[:-1], -1))
        (torch.view_as_real(values) if values.is_complex() else values).mul_(self.factor)
        return values


@dataclass(frozen=True)
class GridProjection:
    """(..., amplitudes) -> (..., coefficients) as a sum of layers, the first of which fills all coefficients."""

    layers: tuple[Layer, ...]

    def __call__(self, amplitudes: Tensor) -> Tensor:
        out = self.layers[0].gather(amplitudes)
        for layer in self.layers[1:]:
            if layer.target is None:
                out += layer.gather(amplitudes)
            else:
                out[..., layer.target] += layer.gather(amplitudes)
        return out


def _layers(target: Tensor, source: Tensor, factor: Tensor, size: int, device: torch.device | str) -> GridProjection:
    """Sort the entries into layers with at most one entry per target; a layer lists its targets if they are few."""
    order = torch.argsort(target, stable=True)
    target, source, factor = target[order], source[order], factor[order]
    rank = torch.arange(len(target)) - torch.searchsorted(target, target)
    layers = []
    for depth in range(int(rank.max()) + 1 if len(rank) else 1):
        t, s, f = target[rank == depth], source[rank == depth], factor[rank == depth]
        if depth and 4 * len(t) < size:
            layers.append(Layer(s.to(device), f.to(device), t.to(device)))
            continue
        sources = torch.zeros(size, dtype=torch.int64)
        factors = torch.zeros((size, *f.shape[1:]), dtype=torch.float64)
        sources[t], factors[t] = s, f
        layers.append(Layer(sources.to(device), factors.to(device)))
    return GridProjection(tuple(layers))


def _flat(index: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The position of each index (.., dim) in a flattened array of this shape: (..)."""
    strides = [math.prod(shape[a + 1 :]) for a in range(len(shape))]
    return (index * torch.tensor(strides)).sum(-1)


def exponentials(k: Tensor, grid: Grid, device: torch.device | str) -> GridProjection:
    """The map from pairs z_k = a + ib to the grid's coefficients of sum_k Re(z_k exp(i kappa_k.x)) sqrt(2/V).

    z_k/sqrt(2V) is added to the coefficient k mod N and its conjugate to -k mod N, if these are in the stored half.
    Where the two are the same coefficient (the zero vector, Nyquist) it gets their sum 2 Re z_k/sqrt(2V): a cosine with
    its full weight and no sine. The zero vector itself is the constant a/sqrt(V).
    """
    points = torch.tensor(grid.points)
    factor = torch.full((len(k), 2), 1 / math.sqrt(2 * grid.volume), dtype=torch.float64)
    direct, mirror = k % points, -k % points
    own = (direct == mirror).all(1)
    factor[own] *= torch.tensor([2.0, 0.0], dtype=torch.float64)
    factor[(k == 0).all(1), 0] = 1 / math.sqrt(grid.volume)
    half = grid.spectral_shape[-1]
    first, second = direct[:, -1] < half, (mirror[:, -1] < half) & ~own
    numbers = torch.arange(len(k))
    conjugate = torch.tensor([1.0, -1.0], dtype=torch.float64)
    return _layers(
        _flat(torch.cat((direct[first], mirror[second])), grid.spectral_shape),
        torch.cat((numbers[first], numbers[second])),
        torch.cat((factor[first], factor[second] * conjugate)),
        math.prod(grid.spectral_shape),
        device,
    )


def sines(k: Tensor, grid: Grid, device: torch.device | str) -> GridProjection:
    """The map from amplitudes of prod_i sqrt(2/L_i) sin(pi k_i x_i/L_i) to the grid's coefficients; k = 0 has none."""
    points = torch.tensor(grid.points)
    m = k % (2 * points)
    sign = torch.where(m < points, 1.0, -1.0).to(torch.float64).prod(1)
    m = torch.where(m < points, m, 2 * points - m)
    visible = ((m > 0) & (m < points)).all(1)
    scale = math.prod(math.sqrt(2 / length) for length in grid.lengths)
    return _layers(
        _flat(m[visible], grid.points),
        torch.arange(len(k))[visible],
        sign[visible] * scale,
        math.prod(grid.points),
        device,
    )
