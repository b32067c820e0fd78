"""The kernels of `norm` for NVIDIA GPUs (Triton)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from spdebench.models.layers.fused import programs

ELEMENTS = 4096  # numbers of x that a program holds at once


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
    grad, x, weight, to_x, to_weight, to_bias, total, c, eps, blocks, rows: tl.constexpr, width: tl.constexpr
):
    p, i = tl.program_id(0), tl.arange(0, width)
    w = tl.load(weight + i, mask=i < c, other=0.0)
    sum_weight, sum_bias = tl.zeros((width,), tl.float32), tl.zeros((width,), tl.float32)
    for block in range(p, blocks, tl.num_programs(0)):
        r = block * rows + tl.arange(0, rows)
        inside = (r < total)[:, None] & (i < c)[None, :]
        at = r.to(tl.int64)[:, None] * c + i[None, :]
        g = tl.load(grad + at, mask=inside, other=0.0)
        normal, scale = _normal(tl.load(x + at, mask=inside, other=0.0), c, eps, inside)
        sum_weight += tl.sum(g * normal, axis=0)
        sum_bias += tl.sum(g, axis=0)
        g *= w[None, :]
        mean, along = tl.sum(g, axis=1) / c, tl.sum(g * normal, axis=1) / c
        tl.store(to_x + at, (g - mean[:, None] - normal * along[:, None]) * scale[:, None], mask=inside)
    tl.store(to_weight + p * c + i, sum_weight, mask=i < c)
    tl.store(to_bias + p * c + i, sum_bias, mask=i < c)


def forward(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """x (.., C) normalised along its last axis."""
    c, out = x.shape[-1], torch.empty_like(x)
    total, (rows, width) = x.numel() // c, _tile(c)
    _forward_kernel[(triton.cdiv(total, rows),)](x, weight, bias, out, total, c, eps, rows, width)
    return out


def backward(grad: Tensor, x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x, weight and bias."""
    c, to_x = x.shape[-1], torch.empty_like(x)
    total, (rows, width) = x.numel() // c, _tile(c)
    blocks = triton.cdiv(total, rows)
    count = min(blocks, programs(x.device.index))
    to_weight, to_bias = x.new_empty(2, count, c)
    _backward_kernel[(count,)](grad, x, weight, to_x, to_weight, to_bias, total, c, eps, blocks, rows, width)
    return to_x, to_weight.sum(0), to_bias.sum(0)


def _tile(c: int) -> tuple[int, int]:
    width = triton.next_power_of_2(c)
    return ELEMENTS // width, width
