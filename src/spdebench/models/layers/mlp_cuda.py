"""The kernels of `mlp` for NVIDIA GPUs (Triton); products are those of three TF32 products, accurate as float32."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from spdebench.models.layers.fused import programs

ROWS, BACK_ROWS = 64, 32  # rows of x that a program holds at once; the fastest of 27 choices on an H200, as is PART
PART = 32  # hidden channels of a program that computes gradients
LARGEST = 128


def takes(width: int, hidden: int, out: int) -> bool:
    """Whether a program can hold both matrices."""
    return width <= 32 and out <= 32 and hidden <= LARGEST


@triton.jit
def _activation(a, gelu: tl.constexpr):
    """act(a) and act'(a)."""
    if gelu:
        share = 0.5 * (1.0 + tl.erf(a * 0.7071067811865476))
        return a * share, share + a * 0.3989422804014327 * tl.exp(-0.5 * a * a)
    return tl.maximum(a, 0.0), tl.where(a > 0.0, 1.0, 0.0)


@triton.jit
def _matrix(base, rows, columns, row_count, column_count):
    mask = (rows[:, None] < row_count) & (columns[None, :] < column_count)
    return tl.load(base + rows[:, None] * column_count + columns[None, :], mask=mask, other=0.0)


@triton.jit
def _turned(base, rows, columns, row_count, column_count):
    """The transpose of a matrix (column_count, row_count) in memory."""
    mask = (rows[:, None] < row_count) & (columns[None, :] < column_count)
    return tl.load(base + columns[None, :] * row_count + rows[:, None], mask=mask, other=0.0)


@triton.jit
def _forward_kernel(
    x, first, first_bias, second, second_bias, out, total, c, h, d,
    gelu: tl.constexpr, rows: tl.constexpr, inner: tl.constexpr, hidden: tl.constexpr, outer: tl.constexpr,
):  # fmt: skip
    i, j, k = tl.arange(0, inner), tl.arange(0, hidden), tl.arange(0, outer)
    r = tl.program_id(0) * rows + tl.arange(0, rows)
    here = (r < total)[:, None]
    at = r.to(tl.int64)[:, None]
    values = tl.load(x + at * c + i[None, :], mask=here & (i < c)[None, :], other=0.0)
    a = tl.dot(values, _turned(first, i, j, c, h), input_precision="tf32x3")
    a, _ = _activation(a + tl.load(first_bias + j, mask=j < h, other=0.0)[None, :], gelu)
    if outer == 1:
        y = tl.sum(a * tl.load(second + j, mask=j < h, other=0.0)[None, :], axis=1) + tl.load(second_bias)
        tl.store(out + r.to(tl.int64), y, mask=r < total)
    else:
        y = tl.dot(a, _turned(second, j, k, h, d), input_precision="tf32x3")
        y += tl.load(second_bias + k, mask=k < d, other=0.0)[None, :]
        tl.store(out + at * d + k[None, :], y, mask=here & (k < d)[None, :])


@triton.jit
def _backward_kernel(
    x, grad, first, first_bias, second, to_x, to_first, to_first_bias, to_second, to_second_bias,
    total, c, h, d, blocks,
    gelu: tl.constexpr, rows: tl.constexpr, inner: tl.constexpr, part: tl.constexpr, outer: tl.constexpr,
):  # fmt: skip
    """Some hidden channels, blocks of rows p, p + P, ..; the gradients of the parameters are summed over these blocks.

    dL/dx is written for each group of hidden channels apart: all of them at once would not fit the registers.
    """
    p, step = tl.program_id(0), tl.num_programs(0)
    i, j, k = tl.arange(0, inner), tl.program_id(1) * part + tl.arange(0, part), tl.arange(0, outer)
    matrix = _turned(first, i, j, c, h)  # (C, H)
    straight = _matrix(first, j, i, h, c)  # (H, C)
    shift = tl.load(first_bias + j, mask=j < h, other=0.0)
    sum_first = tl.zeros((part, inner), tl.float32)
    sum_first_bias = tl.zeros((part,), tl.float32)
    if outer == 1:
        row = tl.load(second + j, mask=j < h, other=0.0)
        sum_row = tl.zeros((part,), tl.float32)
        sum_one = tl.zeros((rows,), tl.float32)
    else:
        back = _matrix(second, k, j, d, h)  # (D, H)
        sum_second = tl.zeros((outer, part), tl.float32)
        sum_second_bias = tl.zeros((outer,), tl.float32)
    to_x += tl.program_id(1).to(tl.int64) * total * c
    for block in range(p, blocks, step):
        r = block * rows + tl.arange(0, rows)
        here, at = (r < total)[:, None], r.to(tl.int64)[:, None]
        values = tl.load(x + at * c + i[None, :], mask=here & (i < c)[None, :], other=0.0)
        a = tl.dot(values, matrix, input_precision="tf32x3") + shift[None, :]
        value, slope = _activation(a, gelu)
        if outer == 1:
            g = tl.load(grad + r.to(tl.int64), mask=r < total, other=0.0)
            sum_row += tl.sum(value * g[:, None], axis=0)
            sum_one += g
            delta = g[:, None] * row[None, :] * slope
        else:
            g = tl.load(grad + at * d + k[None, :], mask=here & (k < d)[None, :], other=0.0)
            sum_second += tl.dot(tl.trans(g), value, input_precision="tf32x3")
            sum_second_bias += tl.sum(g, axis=0)
            delta = tl.dot(g, back, input_precision="tf32x3") * slope
        sum_first += tl.dot(tl.trans(delta), values, input_precision="tf32x3")
        sum_first_bias += tl.sum(delta, axis=0)
        tl.store(
            to_x + at * c + i[None, :],
            tl.dot(delta, straight, input_precision="tf32x3"),
            mask=here & (i < c)[None, :],
        )
    tl.store(to_first + (p * h + j[:, None]) * c + i[None, :], sum_first, mask=(j < h)[:, None] & (i < c)[None, :])
    tl.store(to_first_bias + p * h + j, sum_first_bias, mask=j < h)
    if outer == 1:
        tl.store(to_second + p * h + j, sum_row, mask=j < h)
        tl.store(to_second_bias + p, tl.sum(sum_one, axis=0))
    else:
        both = (k < d)[:, None] & (j < h)[None, :]
        tl.store(to_second + (p * d + k[:, None]) * h + j[None, :], sum_second, mask=both)
        tl.store(to_second_bias + p * d + k, sum_second_bias, mask=k < d)


def forward(x: Tensor, first: Tensor, a: Tensor, second: Tensor, b: Tensor, activation: str) -> Tensor:
    """x (.., C) -> (.., D)."""
    h, c = first.shape
    d, total = len(second), x.numel() // c
    out = x.new_empty(*x.shape[:-1], d)
    _forward_kernel[(triton.cdiv(total, ROWS),)](
        x, first, a, second, b, out, total, c, h, d, activation == "gelu", ROWS, *_sizes(c, h, d), num_warps=4
    )
    return out


def backward(
    grad: Tensor, x: Tensor, first: Tensor, a: Tensor, second: Tensor, b: Tensor, activation: str
) -> tuple[Tensor, ...]:
    """Gradients of x and of the four parameters."""
    h, c = first.shape
    d, total = len(second), x.numel() // c
    inner, hidden, outer = _sizes(c, h, d)
    part = min(hidden, PART)
    groups, blocks = hidden // part, triton.cdiv(total, BACK_ROWS)
    count = min(blocks, max(1, 2 * programs(x.device.index) // groups))
    sums = [x.new_empty(count, *p.shape) for p in (first, a, second, b)]
    to_x = x.new_empty(groups, *x.shape)
    _backward_kernel[(count, groups)](
        x, grad, first, a, second, to_x, *sums, total, c, h, d, blocks, activation == "gelu", BACK_ROWS, inner, part,
        outer, num_warps=2,
    )  # fmt: skip
    return to_x.sum(0) if groups > 1 else to_x[0], *(part.sum(0) for part in sums)


def _sizes(c: int, h: int, d: int) -> tuple[int, int, int]:
    """Tiles; products need 16 along each side. One output is a sum, not a product."""
    inner, hidden, outer = (max(16, triton.next_power_of_2(n)) for n in (c, h, d))
    return inner, hidden, outer if d > 1 else 1
