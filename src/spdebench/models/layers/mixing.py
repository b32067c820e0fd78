"""Channels mixed mode by mode:  y(mode) = z(mode) W(mode), complex numbers as pairs of real ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spdebench import accel
from spdebench.models.layers.precision import full_precision, wide


def mix(z: Tensor, weight: Tensor) -> Tensor:
    """y(mode) = z(mode) W(mode), complex products: z (2, modes.., B, C), W (2, modes.., C, D) -> (2, modes.., B, D)."""
    with full_precision(z):
        modes, matrices = wide(z).reshape(2, -1, *z.shape[-2:]), weight.reshape(2, -1, *weight.shape[-2:])
        product = _complex_product if torch.compiler.is_compiling() else _Mixing.apply
        flat: Tensor = product(modes, matrices)
    return flat.reshape(*z.shape[:-1], -1)


def _complex_product(z: Tensor, weight: Tensor) -> Tensor:
    """z W for every mode: four real products."""
    (a, b), (p, q) = z.unbind(0), weight.unbind(0)
    return torch.stack([a.bmm(p).baddbmm(b, q, alpha=-1), b.bmm(p).baddbmm(a, q)])


class _Mixing(torch.autograd.Function):
    """z W for every mode; the gradients are g W^H and z^H g."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(z, weight)
        y: Tensor = _kernels(z, weight).apply(z, weight)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        z, weight = ctx.saved_tensors
        grad = grad.contiguous()
        kernels = _kernels(z, weight)
        to_z = kernels.apply(grad, weight, adjoint=True) if ctx.needs_input_grad[0] else None
        to_weight = kernels.weight_gradient(z, grad) if ctx.needs_input_grad[1] else None
        return to_z, to_weight


def _kernels(z: Tensor, weight: Tensor) -> Any:
    """Functions `apply` and `weight_gradient`: GPU kernels where they can be used, else batched products of torch."""
    return accel.kernels("spectral", (z, weight), z, weight) or _Batched


class _Batched:
    """Four real products per mode, accumulated in place."""

    @staticmethod
    def apply(z: Tensor, weight: Tensor, *, adjoint: bool = False) -> Tensor:
        """z W for every mode, or z W^H if ``adjoint``."""
        (a, b), (p, q) = z.unbind(0), (weight.mT if adjoint else weight).unbind(0)
        sign = -1 if adjoint else 1
        y = z.new_empty(*z.shape[:-1], p.shape[-1])
        y[0].baddbmm_(a, p, beta=0).baddbmm_(b, q, alpha=-sign)
        y[1].baddbmm_(b, p, beta=0).baddbmm_(a, q, alpha=sign)
        return y

    @staticmethod
    def weight_gradient(z: Tensor, grad: Tensor) -> Tensor:
        """z^H g for every mode."""
        (a, b), (r, s) = z.mT.unbind(0), grad.unbind(0)
        out = z.new_empty(2, z.shape[1], z.shape[-1], grad.shape[-1])
        out[0].baddbmm_(a, r, beta=0).baddbmm_(b, s)
        out[1].baddbmm_(a, s, beta=0).baddbmm_(b, r, alpha=-1)
        return out
