"""A constant matrix along one axis of an array:  out(.., j, ..) = sum_k M(j, k) h(.., k, ..)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from spdebench import accel
from spdebench.models.layers.precision import full_precision, wide


def contract(matrix: Tensor, h: Tensor, axis: int) -> Tensor:
    """out(.., j, ..) = sum_k M(j, k) h(.., k, ..) with a constant M (m, n), n the length of this axis of h."""
    with full_precision(h):
        if torch.compiler.is_compiling():
            return apply_matrix(matrix, wide(h), axis)
        return _Contraction.apply(wide(h), matrix, axis)  # type: ignore[no-any-return,no-untyped-call]


class _Contraction(torch.autograd.Function):
    """M h, whose gradient is M' g."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, matrix: Tensor, axis: int) -> Tensor:
        ctx.axis = axis
        ctx.save_for_backward(matrix)
        return apply_matrix(matrix, h, axis)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (matrix,) = ctx.saved_tensors
        return apply_matrix(matrix.T, grad, ctx.axis), None, None


def apply_matrix(matrix: Tensor, h: Tensor, axis: int) -> Tensor:
    """`contract` without a gradient of its own: one product, or one for each index of the axes before ``axis``."""
    before, after = h.shape[:axis], h.shape[axis + 1 :]
    flat = h.reshape(math.prod(before), matrix.shape[1], math.prod(after))
    return _product(matrix, flat).reshape(*before, matrix.shape[0], *after)


def _product(matrix: Tensor, h: Tensor) -> Tensor:
    """M (m, n) times h (l, n, r): (l, m, r)."""
    if (cuda := accel.kernels("contract", (h, matrix), matrix, h)) is not None:
        return cuda.contract(matrix, h.contiguous())  # type: ignore[no-any-return]
    return (matrix @ h[0])[None] if len(h) == 1 else torch.bmm(matrix.expand(len(h), -1, -1), h)
