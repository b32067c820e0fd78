"""Galerkin attention over n tokens x_i in R^C, linear in n (Cao 2021, with the norm of the benchmark's variant).

    q = W_q x + b_q, k = W_k x, v = W_v x;   k^, v^: each channel to mean 0, variance 1 over the tokens (eps 1e-5)
    y_i = W_o q_i' [ sum_j k^_j v^_j' / n ]_heads + b_o,   [.]_heads: only entries within a head are kept

Tokens are coupled by second moments only, so with S = sum_j (x_j - m)(x_j - m)' / n, m their mean,
    sum_j k^_j v^_j' / n = D_k W_k S W_v' D_v,   D_k = diag(W_k S W_k' + eps)^-1/2,   D_v likewise,
and y is one C x C matrix for each sample applied to x: two passes over the tokens instead of seven (k, v, their norms,
q, the product, W_o). Biases of k and v cancel in k^ and v^; they are in the paper's count only (``dead_biases``).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from spdebench import accel
from spdebench.accel.rows import gram
from spdebench.errors import UserError
from spdebench.models.layers.linear import affine
from spdebench.models.layers.mlp import mlp
from spdebench.models.layers.norm import LayerNorm

EPS = 1e-5


class GalerkinAttention(nn.Module):
    """(B, n, C) -> (B, n, C). W_q, W_k, W_v start as Xavier uniform with gain 0.01 plus 0.01 times the identity."""

    heads_mask: Tensor

    def __init__(self, width: int, heads: int, *, dead_biases: bool = False) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise UserError(f"attention: width {width} must be a multiple of heads, got {heads}")
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width, bias=b) for b in (True, dead_biases, dead_biases))
        self.out = nn.Linear(width, width)
        for layer in (self.query, self.key, self.value):
            nn.init.xavier_uniform_(layer.weight, gain=0.01)
            with torch.no_grad():
                layer.weight += 0.01 * torch.eye(width)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        head = torch.arange(width) // (width // heads)
        self.register_buffer("heads_mask", (head[:, None] == head).float(), persistent=False)

    def forward(self, x: Tensor, before: Tensor | None = None) -> Tensor:
        """The attention of x (B, n, C), plus ``before`` if given."""
        if accel.kernels("attention", (x, self.query.weight), self.key.in_features):
            query, key, value = self.query, self.key.weight, self.value.weight
            parameters = query.weight, query.bias, key, value, *self.out.parameters()
            return _Fused.apply(x, before, *parameters, self.heads)  # type: ignore[no-any-return,no-untyped-call]
        centred = x - x.mean(1, keepdim=True)  # before the product: reduced-precision products must not cancel
        moment = gram(centred, centred) / x.shape[1]
        key, value = self.key.weight, self.value.weight
        k, v = key @ moment, value @ moment
        across = k @ value.T * self.heads_mask
        across = across * _inverse_root(k, key).unsqueeze(2) * _inverse_root(v, value).unsqueeze(1)
        onwards = across @ self.out.weight.T
        shift = (self.query.bias @ onwards + self.out.bias).unsqueeze(1)
        y = affine(shift, x, self.query.weight.T @ onwards)
        return y if before is None else before + y


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, before: Tensor | None, *rest: Any) -> Tensor:
        *parameters, ctx.heads = rest
        x, before = x.contiguous(), None if before is None else before.contiguous()
        y: Tensor
        y, kept = accel.module("attention").forward(x, before, parameters, ctx.heads, EPS)
        ctx.save_for_backward(x, *parameters, *kept)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, *parameters, mean, moments, matrix = ctx.saved_tensors
        to_x, *to_parameters = accel.module("attention").backward(
            grad.contiguous(), x, parameters, mean, moments, matrix, ctx.heads, EPS
        )
        return to_x, grad if ctx.needs_input_grad[1] else None, *to_parameters, None


def _inverse_root(product: Tensor, weight: Tensor) -> Tensor:
    """(diag(W S W') + eps)^-1/2 for W S = ``product``: (B, C)."""
    return torch.rsqrt((product * weight).sum(-1) + EPS)


class GalerkinBlock(nn.Module):
    """x + Attention(LN x), then x + W_2 GELU(W_1 LN x)."""

    def __init__(self, width: int, heads: int, hidden: int, *, dead_biases: bool = False) -> None:
        super().__init__()
        self.norm_attention, self.norm_feed = LayerNorm(width), LayerNorm(width)
        self.attention = GalerkinAttention(width, heads, dead_biases=dead_biases)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        x, normal = self.norm_attention.with_input(x)
        x, normal = self.norm_feed.with_input(self.attention(normal, x))
        return mlp(normal, self.up, self.down, before=x)
