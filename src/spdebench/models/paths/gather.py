"""Weight gradients of an ODE solve, gathered:  sum_k g_k^T x_k = [g_1; ..; g_K]^T [x_1; ..; x_K].

A solve evaluates the same linear maps y_k = x_k W^T + b at K places. Plain autograd forms a product, a sum for the bias
and two additions at each of them, which is half the time of a training step where the maps are small. Here the backward
pass of an evaluation returns g_k W and stores (x_k, g_k); the products are computed together when all are stored.

Autograd knows when that is: the weights enter the graph together with z_0, and all evaluations follow from z_0, so the
backward pass of this entry comes last. The pairs belong to the graph of one solve, never to a module.
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

_LARGE = 1 << 18  # numbers in W from which gathering is faster on a processor
_HELD = 1 << 28  # bytes of pairs that are held before they are multiplied
_MANY = 1024  # rows that make a product on their own


def gathered(start: Tensor, *layers: Weights) -> tuple[Tensor, list[Map]]:
    """The start of a solve and the layers as maps, which are to be used on what follows from the returned start only.

    They are ordinary maps where there is nothing to gather or to gain, under autocast (evaluations cast weights, each
    for itself) and in compiled code, where gradients cannot be stored on the side.
    """
    able = torch.is_grad_enabled() and not torch.compiler.is_compiling()
    able = able and not torch.is_autocast_enabled(start.device.type)
    notes = [_Notes(*layer) if able and _is_faster(*layer) else None for layer in layers]
    taken = [t for layer, each in zip(layers, notes, strict=True) if each for t in layer]
    if taken:
        start = _Start.apply(start, [each for each in notes if each], *taken)  # type: ignore[no-untyped-call]
    return start, [
        _plain(*layer) if each is None else _noting(*layer, each) for layer, each in zip(layers, notes, strict=True)
    ]


def _is_faster(weight: Tensor, bias: Tensor | None) -> bool:
    """Whether gathering is faster: on a GPU always, on a processor for large weights."""
    asked = weight.requires_grad or (bias is not None and bias.requires_grad)
    return asked and (weight.device.type != "cpu" or weight.numel() >= _LARGE)


def _plain(weight: Tensor, bias: Tensor | None) -> Map:
    if weight.ndim == 2:
        return lambda x: functional.linear(x, weight, bias)
    return lambda x: torch.bmm(x.transpose(0, 1), weight.mT).transpose(0, 1)


def _noting(weight: Tensor, bias: Tensor | None, notes: _Notes) -> Map:
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    return lambda x: _Apply.apply(x, weight, bias, notes)  # type: ignore[no-untyped-call]


class _Notes:
    """Pairs (x, g) of one layer in one backward pass, and the sums over those that are multiplied already."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._asked = weight.requires_grad, bias is not None and bias.requires_grad
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
        """x (rows, in) and g (rows, out), or one matrix of each per mode."""
        self._drop_failed_pass()
        self._pairs.append((x.detach(), g))
        if len(self._pairs) * (x.nbytes + g.nbytes) >= _HELD:
            self._multiply()

    def _multiply(self) -> None:
        x, g = (_joined(parts) for parts in zip(*self._pairs, strict=True))
        new = [_product(g, x, len(self._pairs)) if self._asked[0] else None, g.sum(-2) if self._asked[1] else None]
        self._sums = [b if a is None or b is None else a.add_(b) for a, b in zip(self._sums, new, strict=True)]
        self._pairs = []

    def take(self) -> list[Tensor | None]:
        """The gradients of W and b; None where they are not asked for or no evaluation was met."""
        self._drop_failed_pass()
        if self._pairs:
            self._multiply()
        out = self._sums
        self._clear()
        return out


def _joined(parts: tuple[Tensor, ...]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)


def _product(g: Tensor, x: Tensor, sections: int) -> Tensor:
    """g^T x; long sums are cut into sections, so that a device has as many products to run side by side."""
    if sections > 1 and x.ndim == 2 and len(x) >= _MANY * sections:
        g, x = g.unflatten(0, (sections, -1)), x.unflatten(0, (sections, -1))
        return torch.bmm(g.mT, x).sum(0)
    return g.mT @ x


class _Start(Function):
    """z_0 as it is; backward, which comes last, gives W and b of every layer their gradients."""

    @staticmethod
    def forward(ctx: Any, start: Tensor, notes: list[_Notes], *weights: Tensor | None) -> Tensor:
        ctx.notes = notes
        return start.view_as(start)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        return g, None, *(t for notes in ctx.notes for t in notes.take())


class _Apply(Function):
    """x W^T + b; backward notes (x, g) and gives x its gradient g W."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, notes: _Notes) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.notes = notes
        return _by_row(x, weight, bias) if weight.ndim == 2 else _by_mode(x, weight.mT)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        if weight.ndim == 2:
            ctx.notes.add(x.flatten(0, -2), g.flatten(0, -2))
            return g @ weight, None, None, None
        ctx.notes.add(x.transpose(0, 1), g.transpose(0, 1))
        return _by_mode(g, weight), None, None, None


def _by_row(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """``functional.linear``, which gives a view for more than two axes; what is no view may be changed in place."""
    if x.ndim == 2:
        return functional.linear(x, weight, bias)
    rows, out = x.flatten(0, -2), x.new_empty(*x.shape[:-1], len(weight))
    if bias is None:
        torch.mm(rows, weight.T, out=out.flatten(0, -2))
    else:
        torch.addmm(bias, rows, weight.T, out=out.flatten(0, -2))
    return out


def _by_mode(x: Tensor, matrices: Tensor) -> Tensor:
    """(B, modes, from) and (modes, from, to) -> (B, modes, to), written where it belongs."""
    out = x.new_empty(*x.shape[:2], matrices.shape[2])
    torch.bmm(x.transpose(0, 1), matrices, out=out.transpose(0, 1))
    return out
