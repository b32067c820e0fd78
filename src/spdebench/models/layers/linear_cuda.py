"""The kernels of `linear` for NVIDIA GPUs (Triton), and what kernels that sum over many rows share.

Products are those of three TF32 products, accurate as float32. A sum over all rows is one row of partial sums for each
program and one sum of these: the same numbers in every run.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from spdebench.models.layers.fused import programs

ROWS, WARPS, REGISTERS, SHARE, STAGES = 32, 4, 168, 3, 2  # SHARE: programs a processor


class Sums:
    """Partial sums of several arrays side by side, a row for each program; array a begins at column ``starts[a]``."""

    def __init__(self, like: Tensor, count: int, shapes: Sequence[Sequence[int]]) -> None:
        self.shapes, self.starts, self.length = [torch.Size(s) for s in shapes], list[int](), 0
        for shape in self.shapes:
            self.starts.append(self.length)
            self.length += -(-shape.numel() // 4) * 4  # each begins at a multiple of 16 bytes
        self.parts = like.new_empty(count, self.length)

    def summed(self) -> list[Tensor]:
        """The arrays, views of one buffer."""
        total, pairs = self.parts.sum(0), zip(self.starts, self.shapes, strict=True)
        return [total[start : start + shape.numel()].view(shape) for start, shape in pairs]


def tile(n: int) -> int:
    """The side of a tile for n columns; products need 16."""
    return max(16, triton.next_power_of_2(n))


@triton.jit
def split(x):
    """x as a TF32 number and the rest."""
    large = ((x.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return large, x - large


@triton.jit
def product(a, a_rest, b, b_rest, total):
    """total + (a + a_rest)(b + b_rest) without the product of the rests, 2^-22 of it."""
    total = tl.dot(a_rest, b, total, input_precision="tf32")
    total = tl.dot(a, b_rest, total, input_precision="tf32")
    return tl.dot(a, b, total, input_precision="tf32")


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
