"""Weight gradients of an ODE solve, computed together:  sum_k g_k^T x_k = [g_1; ..; g_K]^T [x_1; ..; x_K].

A solve evaluates the same linear maps y_k = x_k W^T + b K times. Plain autograd computes a product, a sum for the bias
and two additions for each of them, which is half the time of a training step if the maps are small. Here the backward
pass of an evaluation returns g_k W and stores (x_k, g_k); the products are computed together when all are stored.

The weights enter the graph together with z_0, and all evaluations follow from z_0, so the backward pass of this node
comes last; it computes the products. The pairs belong to the graph of one solve and never to a module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

Map = Callable[[Tensor], Tensor]
Weights = tuple[Tensor, Tensor | None]
"""W (out, in), b (out) or None, for x (.., in); or W (modes, out, in), one per mode, None, for x (B, modes, in)."""

_LARGE = 1 << 18  # from this number of entries of W on, gathering is faster on a processor
_HELD = 1 << 28  # bytes of pairs that are stored before they are multiplied
_MANY = 1024  # rows of a section of a long product


def gathered(start: Tensor, *layers: Weights) -> tuple[Tensor, list[Map]]:
    """(start, maps): the start of a solve and the layers as maps, to be used only on values computed from that start.

    They are ordinary linear maps where no gradients are needed or nothing is gained, under autocast (each evaluation
    casts the weights) and in compiled code, where gradients cannot be stored on the side.
    """
    possible = torch.is_grad_enabled() and not torch.compiler.is_compiling()
    possible = possible and not torch.is_autocast_enabled(start.device.type)
    sums = [_GradientSums(*layer) if possible and _is_faster(*layer) else None for layer in layers]
    weights = [t for layer, each in zip(layers, sums, strict=True) if each for t in layer]
    if weights:
        start = _Start.apply(start, [each for each in sums if each], *weights)  # type: ignore[no-untyped-call]
    return start, [
        _plain(*layer) if each is None else _storing(*layer, each) for layer, each in zip(layers, sums, strict=True)
    ]


def _is_faster(weight: Tensor, bias: Tensor | None) -> bool:
    """Whether gathering is faster: on a GPU always, on a processor for large weights."""
    needed = weight.requires_grad or (bias is not None and bias.requires_grad)
    return needed and (weight.device.type != "cpu" or weight.numel() >= _LARGE)


def _plain(weight: Tensor, bias: Tensor | None) -> Map:
    """The linear map with the ordinary gradients of autograd."""
    if weight.ndim == 2:
        return lambda x: functional.linear(x, weight, bias)
    return lambda x: torch.bmm(x.transpose(0, 1), weight.mT).transpose(0, 1)


def _storing(weight: Tensor, bias: Tensor | None, sums: _GradientSums) -> Map:
    """The linear map whose backward pass stores (x, g) in ``sums``."""
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    return lambda x: _Apply.apply(x, weight, bias, sums)  # type: ignore[no-untyped-call]


class _GradientSums:
    """Pairs (x, g) of one layer in one backward pass, and the sums over those that are multiplied already."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._needed = weight.requires_grad, bias is not None and bias.requires_grad
        self._pass = -1
        self._clear()

    def _clear(self) -> None:
        self._pairs: list[tuple[Tensor, Tensor]] = []
        self._sums: list[Tensor | None] = [None, None]  # of W and b

    def _drop_failed_pass(self) -> None:
        """Drop what an earlier backward pass left behind because it failed or ended before the start of the solve."""
        now = torch._C._current_graph_task_id()  # torch has no public name for the backward pass that runs now
        if now != self._pass:
            self._clear()
            self._pass = now

    def add(self, x: Tensor, g: Tensor) -> None:
        """Store x (rows, in) and g (rows, out), or one matrix of each per mode."""
        self._drop_failed_pass()
        self._pairs.append((x.detach(), g))
        if len(self._pairs) * (x.nbytes + g.nbytes) >= _HELD:
            self._multiply()

    def _multiply(self) -> None:
        """Add the products of the stored pairs to the sums."""
        x, g = (_joined(parts) for parts in zip(*self._pairs, strict=True))
        new = [_product(g, x, len(self._pairs)) if self._needed[0] else None, g.sum(-2) if self._needed[1] else None]
        self._sums = [b if a is None or b is None else a.add_(b) for a, b in zip(self._sums, new, strict=True)]
        self._pairs = []

    def pop_gradients(self) -> list[Tensor | None]:
        """The gradients of W and b, each None if it is not needed or the map was not used; then forget them."""
        self._drop_failed_pass()
        if self._pairs:
            self._multiply()
        out = self._sums
        self._clear()
        return out


def _joined(parts: tuple[Tensor, ...]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)


def _product(g: Tensor, x: Tensor, sections: int) -> Tensor:
    """g^T x; a long sum is cut into ``sections``, so that a device can compute that many products in parallel."""
    if sections > 1 and x.ndim == 2 and len(x) >= _MANY * sections:
        g, x = g.unflatten(0, (sections, -1)), x.unflatten(0, (sections, -1))
        return torch.bmm(g.mT, x).sum(0)
    return g.mT @ x


class _Start(Function):
    """z_0 unchanged; its backward pass comes last and returns the gradients of W and b of every layer."""

    @staticmethod
    def forward(ctx: Any, start: Tensor, sums: list[_GradientSums], *weights: Tensor | None) -> Tensor:
        ctx.sums = sums
        return start.view_as(start)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        return g, None, *(t for sums in ctx.sums for t in sums.pop_gradients())


class _Apply(Function):
    """x W^T + b; its backward pass stores (x, g) and returns g W, the gradient of x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, sums: _GradientSums) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.sums = sums
        return _by_row(x, weight, bias) if weight.ndim == 2 else _by_mode(x, weight.mT)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        if weight.ndim == 2:
            ctx.sums.add(x.flatten(0, -2), g.flatten(0, -2))
            return g @ weight, None, None, None
        ctx.sums.add(x.transpose(0, 1), g.transpose(0, 1))
        return _by_mode(g, weight), None, None, None


def _by_row(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """``functional.linear``, but never a view (as that returns for more than two axes), so that it can be changed in
    place."""
    if x.ndim == 2:
        return functional.linear(x, weight, bias)
    rows, out = x.flatten(0, -2), x.new_empty(*x.shape[:-1], len(weight))
    if bias is None:
        torch.mm(rows, weight.T, out=out.flatten(0, -2))
    else:
        torch.addmm(bias, rows, weight.T, out=out.flatten(0, -2))
    return out


def _by_mode(x: Tensor, matrices: Tensor) -> Tensor:
    """x (B, modes, in) times matrices (modes, in, out): (B, modes, out)."""
    out = x.new_empty(*x.shape[:2], matrices.shape[2])
    torch.bmm(x.transpose(0, 1), matrices, out=out.transpose(0, 1))
    return out
