"""The end of a layer that adds its result ``far`` to a linear map of its input:  y = act(x W' + b + far).

On a GPU one kernel reads x and far and writes y; one reads x, far and dL/dy and writes dL/dx, dL/dfar and partial sums
of the gradients of W and b. It computes x W' + b + far again, which is cheaper than reading it.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from spdebench import accel
from spdebench.models.layers.linear import linear


def skip(x: Tensor, weight: Tensor, bias: Tensor, far: Tensor, activation: Literal["gelu"] | None = None) -> Tensor:
    """x (n, .., C), W (D, C), b (D,), far (N, .., D) -> (N, .., D).

    The leading axes may differ in length: rows that x lacks count as 0, and rows of x beyond N are not used.
    """
    if x.shape[1:-1] == far.shape[1:-1] and accel.kernels("skip", (x, weight, far), *weight.shape):
        return _Fused.apply(x, weight, bias, far, activation == "gelu")  # type: ignore[no-any-return,no-untyped-call]
    if len(x) < len(far):
        x = torch.cat([x, x.new_zeros(len(far) - len(x), *x.shape[1:])])
    y = linear(x if len(x) == len(far) else x[: len(far)], weight, bias) + far
    return functional.gelu(y) if activation == "gelu" else y


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, far: Tensor, gelu: bool) -> Tensor:
        x, weight, far = x.contiguous(), weight.contiguous(), far.contiguous()
        ctx.save_for_backward(x, weight, *((bias, far) if gelu else ()))
        y: Tensor = accel.module("skip").forward(x, weight, bias, far, gelu)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return (*accel.module("skip").backward(grad.contiguous(), *ctx.saved_tensors), None)
