"""Kernels of the layer `spectral` (Triton): the steps between its matrix products, and the mixing of channels per mode.

Each product is computed as three TF32 products (`tf32x3`), as accurate as float32.
"""

from __future__ import annotations

import math

import triton
import triton.language as tl
from torch import Tensor

from spdebench.accel.triton_math import entries, tile

LARGEST = 64  # channels that a program holds at once


# --- cosines and sines to exponentials, and back ------------------------------------------------------------------
@triton.jit
def _join_kernel(z, out, half, out_half, n, count, rest, low, high, top, block: tl.constexpr):
    """out_{-k} = c_k - i s_k, out_0 = c_0, out_k = c_k + i s_k for one k and one index of the axes before."""
    a, k = tl.program_id(0), tl.program_id(1)
    at = tl.program_id(2) * block + tl.arange(0, block)
    inside = at < rest
    zero = (a.to(tl.int64) * n) * rest + at
    out_zero = (a.to(tl.int64) * count) * rest + at
    c_re = tl.load(z + zero + k * rest, mask=inside)
    c_im = tl.load(z + half + zero + k * rest, mask=inside)
    sine = at < tl.where(k > 0, rest, 0)
    s_re = tl.load(z + zero + (top + k) * rest, mask=sine, other=0.0)
    s_im = tl.load(z + half + zero + (top + k) * rest, mask=sine, other=0.0)
    above = at < tl.where(k <= high, rest, 0)
    tl.store(out + out_zero + (low + k) * rest, c_re - s_im, mask=above)
    tl.store(out + out_half + out_zero + (low + k) * rest, c_im + s_re, mask=above)
    below = at < tl.where((k > 0) & (k <= low), rest, 0)
    tl.store(out + out_zero + (k - 1) * rest, c_re + s_im, mask=below)
    tl.store(out + out_half + out_zero + (k - 1) * rest, c_im - s_re, mask=below)


@triton.jit
def _part_kernel(z, out, half, out_half, n, count, rest, low, high, top, block: tl.constexpr):
    """The transpose: c_k = z_k + z_{-k}, s_k = -i (z_k - z_{-k}), where a mode that z does not have counts as 0."""
    a, k = tl.program_id(0), tl.program_id(1)
    at = tl.program_id(2) * block + tl.arange(0, block)
    inside = at < rest
    zero = (a.to(tl.int64) * count) * rest + at
    out_zero = (a.to(tl.int64) * n) * rest + at
    above = at < tl.where(k <= high, rest, 0)
    below = at < tl.where((k > 0) & (k <= low), rest, 0)
    a_re = tl.load(z + zero + (low + k) * rest, mask=above, other=0.0)
    a_im = tl.load(z + half + zero + (low + k) * rest, mask=above, other=0.0)
    b_re = tl.load(z + zero + (k - 1) * rest, mask=below, other=0.0)
    b_im = tl.load(z + half + zero + (k - 1) * rest, mask=below, other=0.0)
    tl.store(out + out_zero + k * rest, a_re + b_re, mask=inside)
    tl.store(out + out_half + out_zero + k * rest, a_im + b_im, mask=inside)
    sine = at < tl.where(k > 0, rest, 0)
    tl.store(out + out_zero + (top + k) * rest, a_im - b_im, mask=sine)
    tl.store(out + out_half + out_zero + (top + k) * rest, b_re - a_re, mask=sine)


def join(z: Tensor, axis: int, low: int, high: int) -> Tensor:
    """`spectral._join`: (2, .., 2 top + 1, ..) -> (2, .., low + 1 + high, ..) along ``axis``."""
    return _along(_join_kernel, z, axis, low, high, low + 1 + high)


def part(z: Tensor, axis: int, low: int, high: int) -> Tensor:
    """`spectral._part`: the transpose of `join`."""
    return _along(_part_kernel, z, axis, low, high, 2 * max(low, high) + 1)


def _along(kernel: triton.JITFunction, z: Tensor, axis: int, low: int, high: int, length: int) -> Tensor:
    """Apply a kernel along ``axis``, which has ``length`` entries in the result."""
    z, top = z.contiguous(), max(low, high)
    out = z.new_empty(*z.shape[:axis], length, *z.shape[axis + 1 :])
    lead, rest = math.prod(z.shape[1:axis]), math.prod(z.shape[axis + 1 :])
    block = min(1024, triton.next_power_of_2(rest))
    grid = (lead, top + 1, triton.cdiv(rest, block))
    kernel[grid](z, out, z.stride(0), out.stride(0), 2 * top + 1, low + 1 + high, rest, low, high, top, block)
    return out


# --- one complex matrix per mode ------------------------------------------------------------------------------------
@triton.jit
def _put(base, rows, columns, width, values, row_count):
    mask = (rows[:, None] < row_count) & (columns[None, :] < width)
    tl.store(base + rows[:, None] * width + columns[None, :], values, mask=mask)


@triton.jit
def _apply_kernel(
    z, z_half, weight, w_half, out, out_half, batch, c, d, w_row, w_column, sign,
    rows: tl.constexpr, inner: tl.constexpr, outer: tl.constexpr,
):  # fmt: skip
    """y = z W (sign 1) or y = z conj(W) (sign -1) in one mode, W read by its strides: (a + ib)(p + iq)."""
    m = tl.program_id(0).to(tl.int64)
    b, i, j = tl.program_id(1) * rows + tl.arange(0, rows), tl.arange(0, inner), tl.arange(0, outer)
    here = z + m * batch * c
    re, im = entries(here, b, i, c, 1, batch, c), entries(here + z_half, b, i, c, 1, batch, c)
    matrix = weight + m * c * d
    p = entries(matrix, i, j, w_row, w_column, c, d)
    q = entries(matrix + w_half, i, j, w_row, w_column, c, d) * sign
    y_re = tl.dot(re, p, input_precision="tf32x3") - tl.dot(im, q, input_precision="tf32x3")
    y_im = tl.dot(re, q, input_precision="tf32x3") + tl.dot(im, p, input_precision="tf32x3")
    there = out + m * batch * d
    _put(there, b, j, d, y_re, batch)
    _put(there + out_half, b, j, d, y_im, batch)


@triton.jit
def _weight_kernel(
    z, z_half, grad, g_half, out, out_half, batch, c, d,
    rows: tl.constexpr, inner: tl.constexpr, outer: tl.constexpr,
):  # fmt: skip
    """conj(z)' g in one mode, summed over the samples."""
    m = tl.program_id(0).to(tl.int64)
    i, j = tl.arange(0, inner), tl.arange(0, outer)
    re = tl.zeros((inner, outer), tl.float32)
    im = tl.zeros((inner, outer), tl.float32)
    for start in range(0, batch, rows):
        b = start + tl.arange(0, rows)
        here, there = z + m * batch * c, grad + m * batch * d
        z_re, z_im = entries(here, i, b, 1, c, c, batch), entries(here + z_half, i, b, 1, c, c, batch)
        g_re, g_im = entries(there, b, j, d, 1, batch, d), entries(there + g_half, b, j, d, 1, batch, d)
        re += tl.dot(z_re, g_re, input_precision="tf32x3") + tl.dot(z_im, g_im, input_precision="tf32x3")
        im += tl.dot(z_re, g_im, input_precision="tf32x3") - tl.dot(z_im, g_re, input_precision="tf32x3")
    _put(out + m * c * d, i, j, d, re, c)
    _put(out + m * c * d + out_half, i, j, d, im, c)


def apply(z: Tensor, weight: Tensor, *, adjoint: bool = False) -> Tensor:
    """z (2, modes, B, C) times W (2, modes, C, D) -> (2, modes, B, D); ``adjoint``: z (.., D) times W^H -> (.., C)."""
    _, modes, batch, c = z.shape
    d = weight.shape[-2] if adjoint else weight.shape[-1]
    out = z.new_empty(2, modes, batch, d)
    strides = (1, weight.shape[-1]) if adjoint else (weight.shape[-1], 1)
    rows, inner, outer = _sizes(batch, c, d)
    _apply_kernel[(modes, triton.cdiv(batch, rows))](
        z, z.stride(0), weight, weight.stride(0), out, out.stride(0), batch, c, d, *strides, -1.0 if adjoint else 1.0,
        rows, inner, outer,
    )  # fmt: skip
    return out


def weight_gradient(z: Tensor, grad: Tensor) -> Tensor:
    """z^H g for every mode: z (2, modes, B, C), g (2, modes, B, D) -> (2, modes, C, D)."""
    _, modes, batch, c = z.shape
    d = grad.shape[-1]
    out = z.new_empty(2, modes, c, d)
    _weight_kernel[(modes,)](
        z, z.stride(0), grad, grad.stride(0), out, out.stride(0), batch, c, d, *_sizes(batch, c, d)
    )
    return out


def _sizes(batch: int, c: int, d: int) -> tuple[int, int, int]:
    """Sides of the tiles of samples and channels; products need at least 16."""
    return min(32, tile(batch)), tile(c), tile(d)


def supports(z: Tensor, weight: Tensor) -> bool:
    """Whether both arrays are contiguous and the channels fit into one program."""
    small = max(weight.shape[-2:]) <= LARGEST
    return small and all(t[0].is_contiguous() for t in (z, weight)) and len(z) == 2
