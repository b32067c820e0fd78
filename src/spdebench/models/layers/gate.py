"""A gate of the noise on normalised channels:  out = tanh f + tanh(g) xi,  (f, g) = w (h - mean) / sqrt(var + eps) + b.

Mean and variance are those of the batch over all axes but the last (training, where running ones follow them) or the
running ones. On a GPU one kernel reads h for the statistics and one reads h and writes out; the backward ones compute
the intermediate values again, so that only h is stored.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from spdebench import accel

EPS = 1e-5


def gate(
    h: Tensor, xi: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, *, training: bool,
    momentum: float,
) -> Tensor:  # fmt: skip
    """h (.., 2 C), xi (.., 1) -> (.., C); ``mean`` and ``variance`` (2 C) are the running ones."""
    rows, c = h.numel() // h.shape[-1], h.shape[-1] // 2
    if xi.numel() == rows and accel.kernels("gate", (h, xi, weight, mean), rows, c):
        inputs = h, xi, weight, bias, mean, variance, training, momentum
        return _Fused.apply(*inputs)  # type: ignore[no-any-return,no-untyped-call]
    flat = functional.batch_norm(h.flatten(0, -2), mean, variance, weight, bias, training, momentum, EPS)
    f, g = flat.view_as(h).tanh().chunk(2, dim=-1)
    return torch.addcmul(f, g, xi)


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, xi: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, variance: Tensor,
        training: bool, momentum: float,
    ) -> Tensor:  # fmt: skip
        gate_cuda = accel.module("gate")
        h, xi, ctx.training = h.contiguous(), xi.contiguous(), training
        known = (
            gate_cuda.statistics(h, mean, variance, momentum, EPS)
            if training
            else torch.stack([mean, torch.rsqrt(variance + EPS)])
        )
        ctx.save_for_backward(h, xi, weight, bias, known)
        out: Tensor = gate_cuda.forward(h, xi, weight, bias, known)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        h, xi, weight, bias, known = ctx.saved_tensors
        to_h, to_xi, to_weight, to_bias = accel.module("gate").backward(
            grad.contiguous(), h, xi, weight, bias, known, training=ctx.training, to_xi=ctx.needs_input_grad[1]
        )
        return to_h, to_xi, to_weight, to_bias, None, None, None, None
