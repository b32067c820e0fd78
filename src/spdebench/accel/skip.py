"""Kernels of the layer `skip` (Triton); each product is computed as three TF32 products, as accurate as float32."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from spdebench.accel.dispatch import programs
from spdebench.accel.triton_math import Sums, entries, tile

LARGEST = 64  # channels that a program holds at once
ROWS, WARPS = 64, 4  # rows of x that a program holds at once
BACK_ROWS = 32


def supports(d: int, c: int) -> bool:
    """Whether a matrix (d, c) fits into one program."""
    return max(c, d) <= LARGEST


@triton.jit
def _gelu(a):
    """gelu(a) and gelu'(a).

    It is computed by erf, as in torch. `triton_math.activated` is a fit that takes half the instructions. The two
    differ by about 1e-7: to use one in place of the other would change results.
    """
    share = 0.5 * (1.0 + tl.erf(a * 0.7071067811865476))
    return a * share, share + a * 0.3989422804014327 * tl.exp(-0.5 * a * a)


@triton.jit
def _rows(base, r, i, count, width):
    """Rows r of an array (count, width); 0 outside of it."""
    mask = (r < count)[:, None] & (i < width)[None, :]
    return tl.load(base + r[:, None] * width + i[None, :], mask=mask, other=0.0)


@triton.jit
def _forward_kernel(
    x, weight, bias, far, out, held, total, c, d,
    gelu: tl.constexpr, rows: tl.constexpr, inner: tl.constexpr, outer: tl.constexpr,
):  # fmt: skip
    """Rows r of y; x has rows up to ``held``."""
    i, j = tl.arange(0, inner), tl.arange(0, outer)
    r = (tl.program_id(0) * rows + tl.arange(0, rows)).to(tl.int64)
    a = tl.dot(_rows(x, r, i, held, c), entries(weight, i, j, 1, c, c, d), input_precision="tf32x3")
    a += tl.load(bias + j, mask=j < d, other=0.0)[None, :] + _rows(far, r, j, total, d)
    if gelu:
        a, _ = _gelu(a)
    tl.store(out + r[:, None] * d + j[None, :], a, mask=(r < total)[:, None] & (j < d)[None, :])


@triton.jit
def _backward_kernel(
    grad, x, weight, bias, far, to_x, to_far, sums, held, total, c, d, blocks,
    gelu: tl.constexpr, rows: tl.constexpr, inner: tl.constexpr, outer: tl.constexpr,
):  # fmt: skip
    """Blocks of rows p, p + P, ..; the gradients of W and b are summed over these blocks."""
    p, i, j = tl.program_id(0), tl.arange(0, inner), tl.arange(0, outer)
    straight = entries(weight, j, i, c, 1, d, c)  # (D, C)
    if gelu:
        turned = entries(weight, i, j, 1, c, c, d)  # (C, D)
        shift = tl.load(bias + j, mask=j < d, other=0.0)[None, :]
    sum_weight, sum_bias = tl.zeros((outer, inner), tl.float32), tl.zeros((outer,), tl.float32)
    for block in range(p, blocks, tl.num_programs(0)):
        r = (block * rows + tl.arange(0, rows)).to(tl.int64)
        values, delta = _rows(x, r, i, held, c), _rows(grad, r, j, total, d)
        if gelu:
            a = tl.dot(values, turned, input_precision="tf32x3") + shift + _rows(far, r, j, total, d)
            _, slope = _gelu(a)
            delta *= slope
            tl.store(to_far + r[:, None] * d + j[None, :], delta, mask=(r < total)[:, None] & (j < d)[None, :])
        sum_weight += tl.dot(tl.trans(delta), values, input_precision="tf32x3")
        sum_bias += tl.sum(delta, axis=0)
        back = tl.dot(delta, straight, input_precision="tf32x3")
        tl.store(to_x + r[:, None] * c + i[None, :], back, mask=(r < held)[:, None] & (i < c)[None, :])
    sums += p * (d * c + d)
    tl.store(sums + j[:, None] * c + i[None, :], sum_weight, mask=(j < d)[:, None] & (i < c)[None, :])
    tl.store(sums + d * c + j, sum_bias, mask=j < d)


def forward(x: Tensor, weight: Tensor, bias: Tensor, far: Tensor, gelu: bool) -> Tensor:
    """x (n, .., C), far (N, .., D) -> (N, .., D)."""
    (d, c), out = weight.shape, torch.empty_like(far)
    held, total = x.numel() // c, far.numel() // d
    _forward_kernel[(triton.cdiv(total, ROWS),)](
        x, weight, bias, far, out, held, total, c, d, gelu, ROWS, tile(c), tile(d), num_warps=WARPS
    )
    return out


def backward(
    grad: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None = None, far: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of x, W, b and far; bias and far are given if the layer ends with gelu."""
    gelu = far is not None
    (d, c), to_x, to_far = weight.shape, torch.empty_like(x), torch.empty_like(grad) if gelu else grad
    held, total = x.numel() // c, grad.numel() // d
    blocks = triton.cdiv(max(held, total), BACK_ROWS)
    count = min(blocks, 2 * programs(x.device.index))
    sums = Sums(x, count, [(d, c), (d,)], step=1)  # side by side without gaps
    _backward_kernel[(count,)](
        grad, x, weight, bias, far, to_x, to_far, sums.parts, held, total, c, d, blocks,
        gelu, BACK_ROWS, tile(c), tile(d), num_warps=2 if max(c, d) <= 32 else 4,
    )  # fmt: skip
    to_weight, to_bias = sums.summed()
    return to_x, to_weight, to_bias, to_far
