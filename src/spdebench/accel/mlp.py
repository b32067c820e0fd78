"""Kernels of the layer `mlp` (Triton); each product is computed as three TF32 products, as accurate as float32."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from spdebench.accel.dispatch import programs
from spdebench.accel.triton_math import Sums, activated, product, split, tile

ROWS = 64  # rows of x that a program of the forward kernel takes
# backward kernel: rows and hidden channels held at once, warps, registers per thread, programs per multiprocessor
BACK_ROWS, PART, WARPS, REGISTERS, SHARE = 32, 64, 4, 168, 3
LARGEST = 128


def supports(width: int, hidden: int, out: int) -> bool:
    """Whether both matrices, (hidden, width) and (out, hidden), fit into one program."""
    return width <= 32 and out <= 32 and hidden <= LARGEST


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
    x, first, first_bias, second, second_bias, before, out, total, c, h, d,
    gelu: tl.constexpr, add: tl.constexpr,
    rows: tl.constexpr, inner: tl.constexpr, hidden: tl.constexpr, outer: tl.constexpr,
):  # fmt: skip
    i, j, k = tl.arange(0, inner), tl.arange(0, hidden), tl.arange(0, outer)
    r = tl.program_id(0) * rows + tl.arange(0, rows)
    here = (r < total)[:, None]
    at = r.to(tl.int64)[:, None]
    values = tl.load(x + at * c + i[None, :], mask=here & (i < c)[None, :], other=0.0)
    a = tl.dot(values, _turned(first, i, j, c, h), input_precision="tf32x3")
    a, _ = activated(a + tl.load(first_bias + j, mask=j < h, other=0.0)[None, :], gelu)
    if outer == 1:
        y = tl.sum(a * tl.load(second + j, mask=j < h, other=0.0)[None, :], axis=1) + tl.load(second_bias)
        if add:
            y += tl.load(before + r.to(tl.int64), mask=r < total, other=0.0)
        tl.store(out + r.to(tl.int64), y, mask=r < total)
    else:
        y = tl.dot(a, _turned(second, j, k, h, d), input_precision="tf32x3")
        y += tl.load(second_bias + k, mask=k < d, other=0.0)[None, :]
        if add:
            y += tl.load(before + at * d + k[None, :], mask=here & (k < d)[None, :], other=0.0)
        tl.store(out + at * d + k[None, :], y, mask=here & (k < d)[None, :])


@triton.jit
def _backward_kernel(
    x, grad, first, first_bias, second, to_x, sums, total, blocks, c, h, d, length, at_bias, at_second, at_last,
    gelu: tl.constexpr, rows: tl.constexpr, inner: tl.constexpr, part: tl.constexpr, outer: tl.constexpr,
):  # fmt: skip
    """Blocks of rows p, p + P, ..; the gradients of the parameters are summed over these, one row of ``sums``.

    Hidden channels are taken in parts, which fit the registers: the program passes over its rows once for each and
    adds to its own dL/dx, which the cache holds. Hidden arrays are laid out (H, rows): sums over rows stay in a warp.
    """
    p, step = tl.program_id(0), tl.num_programs(0)
    i, k = tl.arange(0, inner), tl.arange(0, outer)
    sums += p.to(tl.int64) * length
    for start in range(0, h, part):
        j = start + tl.arange(0, part)
        matrix, matrix_rest = split(_matrix(first, j, i, h, c))  # (H, C)
        shift = tl.load(first_bias + j, mask=j < h, other=0.0)
        sum_first = tl.zeros((part, inner), tl.float32)
        sum_first_bias = tl.zeros((part,), tl.float32)
        if outer == 1:
            row = tl.load(second + j, mask=j < h, other=0.0)
            sum_row = tl.zeros((part,), tl.float32)
            sum_one = tl.zeros((rows,), tl.float32)
        else:
            back, back_rest = split(_turned(second, j, k, h, d))  # (H, D)
            sum_second = tl.zeros((part, outer), tl.float32)
            sum_second_bias = tl.zeros((outer,), tl.float32)
        for block in range(p, blocks, step):
            r = block * rows + tl.arange(0, rows)
            here, at = (r < total)[:, None], r.to(tl.int64)[:, None]
            place, inside = at * c + i[None, :], here & (i < c)[None, :]
            v, v_rest = split(tl.load(x + place, mask=inside, other=0.0))
            nothing = tl.zeros((part, rows), tl.float32)
            a = product(matrix, matrix_rest, tl.trans(v), tl.trans(v_rest), nothing) + shift[:, None]
            value, slope = activated(a, gelu)
            if outer == 1:
                g = tl.load(grad + r.to(tl.int64), mask=r < total, other=0.0)
                sum_row += tl.sum(value * g[None, :], axis=1)
                sum_one += g
                delta = slope * (g[None, :] * row[:, None])
            else:
                g = tl.load(grad + at * d + k[None, :], mask=here & (k < d)[None, :], other=0.0)
                sum_second_bias += tl.sum(g, axis=0)
                g, g_rest = split(g)
                u, u_rest = split(value)
                sum_second = product(u, u_rest, g, g_rest, sum_second)
                delta = product(back, back_rest, tl.trans(g), tl.trans(g_rest), nothing) * slope
            sum_first_bias += tl.sum(delta, axis=1)
            e, e_rest = split(delta)
            sum_first = product(e, e_rest, v, v_rest, sum_first)
            before = tl.load(to_x + place, mask=inside & (start > 0), other=0.0)
            after = product(tl.trans(e), tl.trans(e_rest), matrix, matrix_rest, before)
            tl.store(to_x + place, after, mask=inside)
        tl.store(sums + j[:, None] * c + i[None, :], sum_first, mask=(j < h)[:, None] & (i < c)[None, :])
        tl.store(sums + at_bias + j, sum_first_bias, mask=j < h)
        if outer == 1:
            tl.store(sums + at_second + j, sum_row, mask=j < h)
            tl.store(sums + at_last, tl.sum(sum_one, axis=0))
        else:
            both = (k < d)[None, :] & (j < h)[:, None]
            tl.store(sums + at_second + k[None, :] * h + j[:, None], sum_second, mask=both)
            tl.store(sums + at_last + k, sum_second_bias, mask=k < d)
        tl.debug_barrier()  # dL/dx so far is seen by all threads


def forward(
    x: Tensor, first: Tensor, a: Tensor, second: Tensor, b: Tensor, activation: str, before: Tensor | None = None
) -> Tensor:
    """The layer's output (.., D) for x (.., C), plus ``before`` (.., D) if it is given."""
    h, c = first.shape
    d, total = len(second), x.numel() // c
    out, add = x.new_empty(*x.shape[:-1], d), before is not None
    _forward_kernel[(triton.cdiv(total, ROWS),)](
        x, first, a, second, b, before if add else out, out, total, c, h, d, activation == "gelu", add, ROWS,
        *_sizes(c, h, d), num_warps=4,
    )  # fmt: skip
    return out


def backward(
    grad: Tensor, x: Tensor, first: Tensor, a: Tensor, second: Tensor, b: Tensor, activation: str
) -> tuple[Tensor, ...]:
    """Gradients of x and of the four parameters, from the gradient (.., D) of the output."""
    h, c = first.shape
    d, total = len(second), x.numel() // c
    inner, hidden, outer = _sizes(c, h, d)
    blocks = triton.cdiv(total, BACK_ROWS)
    count = min(blocks, SHARE * programs(x.device.index) // 2)
    sums = Sums(x, count, [p.shape for p in (first, a, second, b)])
    to_x = torch.empty_like(x)
    _backward_kernel[(count,)](
        x, grad, first, a, second, to_x, sums.parts, total, blocks, c, h, d, sums.length, *sums.starts[1:],
        activation == "gelu", BACK_ROWS, inner, min(hidden, PART), outer,
        num_warps=WARPS, num_stages=1, maxnreg=REGISTERS,
    )  # fmt: skip
    return to_x, *sums.summed()


def _sizes(c: int, h: int, d: int) -> tuple[int, int, int]:
    """Sides of the tiles: products need at least 16; with d = 1 the output is a sum, not a product."""
    return tile(c), tile(h), tile(d) if d > 1 else 1
