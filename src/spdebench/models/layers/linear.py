"""x W' + b on arrays of many rows and few columns, with gradients of W and b that fill a GPU.

    dL/dW = g' x = sum_s g_s' x_s,   dL/db = sum_s 1' g_s

over pieces s of the rows: a batch of products and a short sum. cuBLAS computes one product over 10^5 rows on only a few
of the GPU's multiprocessors. If W is small, one kernel reads g and x once for these and for dL/dx = g W.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from spdebench import accel
from spdebench.accel.rows import FEWEST, PIECE, gram, in_pieces, splitting_pays


class TallLinear(nn.Linear):
    """`nn.Linear` with faster gradients on a GPU."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W' + b along the last axis."""
    rows = x.numel() // x.shape[-1]
    if splitting_pays(x, rows) or (rows >= FEWEST * PIECE and _small(x, weight)):
        return _Tall.apply(x, weight, bias)  # type: ignore[no-any-return,no-untyped-call]
    return functional.linear(x, weight, bias)


def affine(shift: Tensor, x: Tensor, matrix: Tensor) -> Tensor:
    """shift + x M for every sample by itself: shift (B, 1, D), x (B, n, C), M (B, C, D)."""
    if splitting_pays(x, x.shape[1]):
        return _Affine.apply(shift, x, matrix)  # type: ignore[no-any-return,no-untyped-call]
    return torch.baddbmm(shift, x, matrix)


def _small(x: Tensor, weight: Tensor) -> bool:
    """Whether W is small enough that one kernel can compute all gradients."""
    return accel.kernels("linear", (x, weight), *weight.shape) is not None


class _Tall(torch.autograd.Function):
    """The result is a view of a product of rows, so autograd does not allow to change it in place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        to_x, to_weight, to_bias = ctx.needs_input_grad
        if to_weight and _small(x, weight) and accel.can_use_kernels(grad):
            tensors = (t.contiguous() for t in (grad, x, weight))
            return tuple(accel.module("linear").backward(*tensors, to_x=to_x, bias=to_bias))
        flat = grad.reshape(-1, grad.shape[-1])
        return (
            grad @ weight if to_x else None,
            gram(flat, x.reshape(len(flat), -1)) if to_weight else None,
            in_pieces(flat).sum(1).sum(0) if to_bias else None,
        )


class _Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, shift: Tensor, x: Tensor, matrix: Tensor) -> Tensor:
        ctx.save_for_backward(x, matrix)
        return torch.baddbmm(shift, x, matrix)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, matrix = ctx.saved_tensors
        return in_pieces(grad).sum(2).sum(1, keepdim=True), grad @ matrix.mT, gram(x, grad)
