"""Kernels of the layer `gate` (Triton). Each program writes partial sums over rows, which torch then adds up."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from spdebench.accel.dispatch import programs
from spdebench.accel.triton_math import Sums

ELEMENTS = 2048  # numbers of h, or of one half of h, that a program holds at once
SHARE = 4  # programs per multiprocessor, for kernels that loop over many blocks
LARGEST = 64  # channels of f


def supports(rows: int, c: int) -> bool:
    """Whether a row of ``c`` channels fits into one program, and the rows are at least two, fewer than 2^31."""
    return 1 < rows < 2**31 and c <= LARGEST


@triton.jit
def _statistics_kernel(h, parts, total, blocks, width, rows: tl.constexpr, columns: tl.constexpr):
    """Number n, mean m and sum of squares q about m of each channel over the blocks of rows p, p + P, ..

    Welford's update at every place of the block, then Chan's formula over the places.
    """
    p, i = tl.program_id(0), tl.arange(0, columns)
    number = tl.zeros((rows,), tl.float32)
    mean, square = tl.zeros((rows, columns), tl.float32), tl.zeros((rows, columns), tl.float32)
    for block in range(p, blocks, tl.num_programs(0)):
        r = block * rows + tl.arange(0, rows)
        here = r < total
        inside = here[:, None] & (i < width)[None, :]
        value = tl.load(h + r.to(tl.int64)[:, None] * width + i[None, :], mask=inside, other=0.0)
        number += tl.where(here, 1.0, 0.0)
        share = tl.where(here, 1.0 / tl.maximum(number, 1.0), 0.0)
        off = value - mean
        mean += off * share[:, None]
        square += tl.where(here[:, None], off * (value - mean), 0.0)
    n = tl.sum(number, axis=0)
    m = tl.sum(mean * number[:, None], axis=0) / n
    off = mean - m[None, :]
    q = tl.sum(square + off * off * number[:, None], axis=0)
    parts += p * 3 * width
    tl.store(parts + i, tl.zeros((columns,), tl.float32) + n, mask=i < width)
    tl.store(parts + width + i, m, mask=i < width)
    tl.store(parts + 2 * width + i, q, mask=i < width)


@triton.jit
def _combine_kernel(
    parts, known, mean, variance, count, width, momentum, eps, many: tl.constexpr, columns: tl.constexpr
):
    """Mean and 1 / sqrt(var + eps) of some channels from all programs' parts; the running statistics follow."""
    p, i = tl.arange(0, many), tl.program_id(0) * columns + tl.arange(0, columns)
    inside = (p < count)[:, None] & (i < width)[None, :]
    at = parts + p[:, None] * 3 * width + i[None, :]
    number = tl.load(at, mask=inside, other=0.0)
    means = tl.load(at + width, mask=inside, other=0.0)
    squares = tl.load(at + 2 * width, mask=inside, other=0.0)
    n = tl.maximum(tl.sum(number, axis=0), 1.0)
    m = tl.sum(means * number, axis=0) / n
    off = means - m[None, :]
    q = tl.sum(squares + off * off * number, axis=0)
    channel = i < width
    tl.store(known + i, m, mask=channel)
    tl.store(known + width + i, 1.0 / tl.sqrt(q / n + eps), mask=channel)
    old = tl.load(mean + i, mask=channel, other=0.0)
    tl.store(mean + i, (1.0 - momentum) * old + momentum * m, mask=channel)
    old = tl.load(variance + i, mask=channel, other=0.0)
    tl.store(variance + i, (1.0 - momentum) * old + momentum * (q / (n - 1.0)), mask=channel)


@triton.jit
def _tanh(x):
    e = tl.exp(-2.0 * tl.abs(x))
    t = (1.0 - e) / (1.0 + e)
    return tl.where(x < 0.0, -t, t)


@triton.jit
def _channels(known, weight, bias, i, inside, width):
    """Mean, 1 / deviation, scale and shift of channels i."""
    mean = tl.load(known + i, mask=inside, other=0.0)
    inverse = tl.load(known + width + i, mask=inside, other=0.0)
    return mean, inverse, tl.load(weight + i, mask=inside, other=0.0), tl.load(bias + i, mask=inside, other=0.0)


@triton.jit
def _forward_kernel(h, xi, weight, bias, known, out, total, c, rows: tl.constexpr, columns: tl.constexpr):
    r, i = tl.program_id(0) * rows + tl.arange(0, rows), tl.arange(0, columns)
    inside = (r < total)[:, None] & (i < c)[None, :]
    at = r.to(tl.int64)[:, None]
    m, s, w, b = _channels(known, weight, bias, i, i < c, 2 * c)
    f = (tl.load(h + at * (2 * c) + i[None, :], mask=inside, other=0.0) - m[None, :]) * (s * w)[None, :] + b[None, :]
    m, s, w, b = _channels(known, weight, bias, i + c, i < c, 2 * c)
    g = tl.load(h + at * (2 * c) + c + i[None, :], mask=inside, other=0.0)
    g = (g - m[None, :]) * (s * w)[None, :] + b[None, :]
    noise = tl.load(xi + r.to(tl.int64), mask=r < total, other=0.0)
    tl.store(out + at * c + i[None, :], _tanh(f) + _tanh(g) * noise[:, None], mask=inside)


@triton.jit
def _sums_kernel(
    grad, h, xi, weight, bias, known, to_xi, sums, total, blocks, c, length, at_second,
    with_xi: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr,
):  # fmt: skip
    """Sums of d and of d x over the blocks of rows p, p + P, ..;  x: h normalised, d: gradient of w x + b.

    dL/dxi = sum_c dL/dout tanh g."""
    p, i = tl.program_id(0), tl.arange(0, columns)
    fm, fs, fw, fb = _channels(known, weight, bias, i, i < c, 2 * c)
    gm, gs, gw, gb = _channels(known, weight, bias, i + c, i < c, 2 * c)
    plain_f, plain_g = tl.zeros((rows, columns), tl.float32), tl.zeros((rows, columns), tl.float32)
    along_f, along_g = tl.zeros((rows, columns), tl.float32), tl.zeros((rows, columns), tl.float32)
    for block in range(p, blocks, tl.num_programs(0)):
        r = block * rows + tl.arange(0, rows)
        inside = (r < total)[:, None] & (i < c)[None, :]
        at = r.to(tl.int64)[:, None]
        f = (tl.load(h + at * (2 * c) + i[None, :], mask=inside, other=0.0) - fm[None, :]) * fs[None, :]
        g = (tl.load(h + at * (2 * c) + c + i[None, :], mask=inside, other=0.0) - gm[None, :]) * gs[None, :]
        noise = tl.load(xi + r.to(tl.int64), mask=r < total, other=0.0)
        d = tl.load(grad + at * c + i[None, :], mask=inside, other=0.0)
        t, u = _tanh(f * fw[None, :] + fb[None, :]), _tanh(g * gw[None, :] + gb[None, :])
        to_f, to_g = d * (1.0 - t * t), d * noise[:, None] * (1.0 - u * u)
        if with_xi:
            tl.store(to_xi + r.to(tl.int64), tl.sum(d * u, axis=1), mask=r < total)
        plain_f += to_f
        plain_g += to_g
        along_f += to_f * f
        along_g += to_g * g
    sums += p * length + i
    tl.store(sums, tl.sum(plain_f, axis=0), mask=i < c)
    tl.store(sums + c, tl.sum(plain_g, axis=0), mask=i < c)
    tl.store(sums + at_second, tl.sum(along_f, axis=0), mask=i < c)
    tl.store(sums + at_second + c, tl.sum(along_g, axis=0), mask=i < c)


@triton.jit
def _backward_kernel(
    grad, h, xi, weight, bias, known, plain, along, to_h, total, c, share, rows: tl.constexpr, columns: tl.constexpr
):
    """dL/dh = w s (d - share (sum d + x sum d x)); ``share``: 1 / rows, or 0 where the statistics are given."""
    r, i = tl.program_id(0) * rows + tl.arange(0, rows), tl.arange(0, columns)
    inside = (r < total)[:, None] & (i < c)[None, :]
    at = r.to(tl.int64)[:, None]
    d = tl.load(grad + at * c + i[None, :], mask=inside, other=0.0)
    m, s, w, b = _channels(known, weight, bias, i, i < c, 2 * c)
    place = at * (2 * c) + i[None, :]
    f = (tl.load(h + place, mask=inside, other=0.0) - m[None, :]) * s[None, :]
    t = _tanh(f * w[None, :] + b[None, :])
    flat = tl.load(plain + i, mask=i < c, other=0.0) * share
    slope = tl.load(along + i, mask=i < c, other=0.0) * share
    tl.store(to_h + place, (d * (1.0 - t * t) - flat[None, :] - f * slope[None, :]) * (w * s)[None, :], mask=inside)
    m, s, w, b = _channels(known, weight, bias, i + c, i < c, 2 * c)
    noise = tl.load(xi + r.to(tl.int64), mask=r < total, other=0.0)
    g = (tl.load(h + place + c, mask=inside, other=0.0) - m[None, :]) * s[None, :]
    t = _tanh(g * w[None, :] + b[None, :])
    flat = tl.load(plain + c + i, mask=i < c, other=0.0) * share
    slope = tl.load(along + c + i, mask=i < c, other=0.0) * share
    d = d * noise[:, None] * (1.0 - t * t) - flat[None, :] - g * slope[None, :]
    tl.store(to_h + place + c, d * (w * s)[None, :], mask=inside)


def statistics(h: Tensor, mean: Tensor, variance: Tensor, momentum: float, eps: float) -> Tensor:
    """Mean and 1 / sqrt(var + eps) of every channel: (2, channels). ``mean`` and ``variance``, the running ones, are
    moved towards those of h by ``momentum``, the variance without bias."""
    width = h.shape[-1]
    total, columns = h.numel() // width, triton.next_power_of_2(width)
    rows = ELEMENTS // columns
    blocks = triton.cdiv(total, rows)
    count = min(blocks, 2 * programs(h.device.index))
    parts, known = h.new_empty(count, 3, width), h.new_empty(2, width)
    _statistics_kernel[(count,)](h, parts, total, blocks, width, rows, columns)
    _combine_kernel[(triton.cdiv(width, 8),)](
        parts, known, mean, variance, count, width, momentum, eps, triton.next_power_of_2(count), 8
    )
    return known


def forward(h: Tensor, xi: Tensor, weight: Tensor, bias: Tensor, known: Tensor) -> Tensor:
    """h (.., 2 C), xi (.., 1) -> (.., C)."""
    total, c, rows, columns = _shape(h)
    out = h.new_empty(*h.shape[:-1], c)
    _forward_kernel[(triton.cdiv(total, rows),)](h, xi, weight, bias, known, out, total, c, rows, columns)
    return out


def backward(
    grad: Tensor, h: Tensor, xi: Tensor, weight: Tensor, bias: Tensor, known: Tensor, *, training: bool, to_xi: bool
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """Gradients of h, xi (where asked for), weight and bias."""
    total, c, rows, columns = _shape(h)
    blocks = triton.cdiv(total, rows)
    count = min(blocks, SHARE * programs(h.device.index) // 2)
    noise, to_h = torch.empty_like(xi) if to_xi else None, torch.empty_like(h)
    sums = Sums(h, count, [(2 * c,), (2 * c,)])
    _sums_kernel[(count,)](
        grad, h, xi, weight, bias, known, xi if noise is None else noise, sums.parts, total, blocks, c, sums.length,
        sums.starts[1], to_xi, rows, columns,
    )  # fmt: skip
    to_bias, to_weight = sums.summed()
    _backward_kernel[(blocks,)](
        grad, h, xi, weight, bias, known, to_bias, to_weight, to_h, total, c, 1.0 / total if training else 0.0,
        rows, columns,
    )  # fmt: skip
    return to_h, noise, to_weight, to_bias


def _shape(h: Tensor) -> tuple[int, int, int, int]:
    """Rows, C, and the tile of a half of h."""
    c = h.shape[-1] // 2
    columns = triton.next_power_of_2(c)
    return h.numel() // (2 * c), c, ELEMENTS // columns, columns
