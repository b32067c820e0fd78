"""A pointwise perceptron with one hidden layer on tall arrays:  y = B act(A x + a) + b,  act = relu or gelu.

On a GPU one kernel reads x and writes y, and one reads x and dL/dy and writes dL/dx and partial sums of the parameters'
gradients: the hidden layer, four times wider than x, is never stored.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from spdebench import accel
from spdebench.models.layers.linear import TallLinear

Activation = Literal["relu", "gelu"]


class MLP(nn.Sequential):
    """Linear, activation, linear: the modules 0, 1 and 2."""

    def __init__(self, width: int, hidden: int, out: int, activation: Activation = "gelu") -> None:
        act = nn.GELU() if activation == "gelu" else nn.ReLU(inplace=True)
        super().__init__(TallLinear(width, hidden), act, TallLinear(hidden, out))
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        first, _, second = self
        assert isinstance(first, nn.Linear) and isinstance(second, nn.Linear)
        return mlp(x, first, second, self.activation)


def mlp(
    x: Tensor, first: nn.Linear, second: nn.Linear, activation: Activation = "gelu", *, before: Tensor | None = None
) -> Tensor:
    """before + second(act(first(x))) along the last axis."""
    if accel.kernels("mlp", (x, first.weight), first.in_features, first.out_features, second.out_features):
        parameters = first.weight, first.bias, second.weight, second.bias
        return _Fused.apply(x, *parameters, activation, before)  # type: ignore[no-any-return,no-untyped-call]
    hidden, in_place = first(x), not torch.is_grad_enabled()  # with gradients hidden may be a view, see `_Tall`
    y: Tensor = second(functional.gelu(hidden) if activation == "gelu" else functional.relu(hidden, inplace=in_place))
    return y if before is None else before + y


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor, activation: str, before: Tensor | None
    ) -> Tensor:
        x, ctx.activation = x.contiguous(), activation
        ctx.save_for_backward(x, a, b, c, d)
        before = None if before is None else before.contiguous()
        y: Tensor = accel.module("mlp").forward(x, a, b, c, d, activation, before)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, a, b, c, d = ctx.saved_tensors
        to_before = grad if ctx.needs_input_grad[6] else None
        return (*accel.module("mlp").backward(grad.contiguous(), x, a, b, c, d, ctx.activation), None, to_before)
