"""Kernels of the layer `linear` (Triton); each product is computed as three TF32 products, as accurate as float32."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from spdebench.accel.dispatch import programs
from spdebench.accel.triton_math import Sums, product, split, tile

ROWS, WARPS, REGISTERS, SHARE, STAGES = 32, 4, 168, 3, 2  # SHARE: programs per multiprocessor
LARGEST = 64  # columns of x and of y


def supports(d: int, c: int) -> bool:
    """Whether a matrix (d, c) fits into one program."""
    return max(c, d) <= LARGEST


@triton.jit
def _backward_kernel(
    grad, x, weight, to_x, sums, total, blocks, c, d, length, at_bias,
    with_x: tl.constexpr, with_bias: tl.constexpr, rows: tl.constexpr, inner: tl.constexpr, outer: tl.constexpr,
):  # fmt: skip
    """Blocks of rows p, p + P, ..:  dL/dx = g W,  and sums over these rows of g' x and of g."""
    p, step = tl.program_id(0), tl.num_programs(0)
    i, k = tl.arange(0, inner), tl.arange(0, outer)
    both = (k < d)[:, None] & (i < c)[None, :]
    if with_x:
        w, w_rest = split(tl.load(weight + k[:, None] * c + i[None, :], mask=both, other=0.0))
    sum_weight = tl.zeros((outer, inner), tl.float32)
    if with_bias:
        sum_bias = tl.zeros((rows, outer), tl.float32)
    for block in range(p, blocks, step):
        r = block * rows + tl.arange(0, rows)
        here, at = (r < total)[:, None], r.to(tl.int64)[:, None]
        place, inside = at * c + i[None, :], here & (i < c)[None, :]
        v, v_rest = split(tl.load(x + place, mask=inside, other=0.0))
        g = tl.load(grad + at * d + k[None, :], mask=here & (k < d)[None, :], other=0.0)
        if with_bias:
            sum_bias += g
        g, g_rest = split(g)
        sum_weight = product(tl.trans(g), tl.trans(g_rest), v, v_rest, sum_weight)
        if with_x:
            dx = product(g, g_rest, w, w_rest, tl.zeros((rows, inner), tl.float32))
            tl.store(to_x + place, dx, mask=inside)
    sums += p.to(tl.int64) * length
    tl.store(sums + k[:, None] * c + i[None, :], sum_weight, mask=both)
    if with_bias:
        tl.store(sums + at_bias + k, tl.sum(sum_bias, axis=0), mask=k < d)


def backward(
    grad: Tensor, x: Tensor, weight: Tensor, *, to_x: bool, bias: bool
) -> tuple[Tensor | None, Tensor, Tensor | None]:
    """Gradients of x, W and b for y = x W' + b: grad (.., D), x (.., C), W (D, C)."""
    d, c = weight.shape
    total = x.numel() // c
    blocks = triton.cdiv(total, ROWS)
    count = min(blocks, SHARE * programs(x.device.index) // 2)
    result = torch.empty_like(x) if to_x else None
    sums = Sums(x, count, [(d, c), (d,)] if bias else [(d, c)])
    _backward_kernel[(count,)](
        grad, x, weight, x if result is None else result, sums.parts, total, blocks, c, d, sums.length, sums.starts[-1],
        to_x, bias, ROWS, tile(c), tile(d), num_warps=WARPS, num_stages=STAGES, maxnreg=REGISTERS,
    )  # fmt: skip
    to_weight, *to_bias = sums.summed()
    return result, to_weight, to_bias[0] if bias else None
