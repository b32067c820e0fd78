"""Kernels of the layer `norm` (Triton): a program normalises many tokens at once."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from spdebench.accel.dispatch import programs
from spdebench.accel.triton_math import Sums

ELEMENTS, BACK_ELEMENTS = 4096, 2048  # numbers of x that a program holds at once, forward and backward
SHARE = 4  # programs per multiprocessor, for kernels that loop over many blocks
LARGEST = 128  # channels


def supports(c: int) -> bool:
    """Whether a token of ``c`` channels fits into one program."""
    return c <= LARGEST


@triton.jit
def _normal(x, c, eps, inside):
    """(x - mean) / sqrt(var + eps) and 1 / sqrt(var + eps) of every row."""
    centred = tl.where(inside, x - (tl.sum(x, axis=1) / c)[:, None], 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=1) / c + eps)
    return centred * scale[:, None], scale


@triton.jit
def _forward_kernel(x, weight, bias, out, total, c, eps, rows: tl.constexpr, width: tl.constexpr):
    r, i = tl.program_id(0) * rows + tl.arange(0, rows), tl.arange(0, width)
    inside = (r < total)[:, None] & (i < c)[None, :]
    at = r.to(tl.int64)[:, None] * c + i[None, :]
    normal, _ = _normal(tl.load(x + at, mask=inside, other=0.0), c, eps, inside)
    w, b = tl.load(weight + i, mask=i < c, other=0.0), tl.load(bias + i, mask=i < c, other=0.0)
    tl.store(out + at, normal * w[None, :] + b[None, :], mask=inside)


@triton.jit
def _backward_kernel(
    grad, residual, x, weight, to_x, sums, total, c, eps, blocks, length, at_bias,
    add: tl.constexpr, rows: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    """dL/dx, plus the gradient ``residual`` of x itself if ``add``; sums over blocks of rows p, p + P, .. for weight
    and bias."""
    p, i = tl.program_id(0), tl.arange(0, width)
    w = tl.load(weight + i, mask=i < c, other=0.0)
    sum_weight, sum_bias = tl.zeros((rows, width), tl.float32), tl.zeros((rows, width), tl.float32)
    for block in range(p, blocks, tl.num_programs(0)):
        r = block * rows + tl.arange(0, rows)
        inside = (r < total)[:, None] & (i < c)[None, :]
        at = r.to(tl.int64)[:, None] * c + i[None, :]
        g = tl.load(grad + at, mask=inside, other=0.0)
        normal, scale = _normal(tl.load(x + at, mask=inside, other=0.0), c, eps, inside)
        sum_weight += g * normal
        sum_bias += g
        g *= w[None, :]
        mean, along = tl.sum(g, axis=1) / c, tl.sum(g * normal, axis=1) / c
        g = (g - mean[:, None] - normal * along[:, None]) * scale[:, None]
        if add:
            g += tl.load(residual + at, mask=inside, other=0.0)
        tl.store(to_x + at, g, mask=inside)
    sums += p * length + i
    tl.store(sums, tl.sum(sum_weight, axis=0), mask=i < c)
    tl.store(sums + at_bias, tl.sum(sum_bias, axis=0), mask=i < c)


def forward(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """x (.., C) normalised along its last axis."""
    c, out = x.shape[-1], torch.empty_like(x)
    total, (rows, width) = x.numel() // c, _tile(c, ELEMENTS)
    _forward_kernel[(triton.cdiv(total, rows),)](x, weight, bias, out, total, c, eps, rows, width)
    return out


def backward(
    grad: Tensor, residual: Tensor | None, x: Tensor, weight: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x, to which ``residual`` is added, of weight and of bias."""
    c, to_x = x.shape[-1], torch.empty_like(x)
    total, (rows, width) = x.numel() // c, _tile(c, BACK_ELEMENTS)
    blocks = triton.cdiv(total, rows)
    count = min(blocks, SHARE * programs(x.device.index) // 2)
    sums = Sums(x, count, [(c,), (c,)])
    _backward_kernel[(count,)](
        grad, grad if residual is None else residual, x, weight, to_x, sums.parts, total, c, eps, blocks, sums.length,
        sums.starts[1], residual is not None, rows, width,
    )  # fmt: skip
    to_weight, to_bias = sums.summed()
    return to_x, to_weight, to_bias


def _tile(c: int, elements: int) -> tuple[int, int]:
    """Rows and columns of a tile that has ``elements`` numbers, for rows of ``c``."""
    width = triton.next_power_of_2(c)
    return elements // width, width
