"""Signatures and log-signatures of paths.

Signature of a path X in R^d, level k, word (i_1..i_k):
    S^k(X) = int_{s_1 < .. < s_k} dX^{i_1}_{s_1} .. dX^{i_k}_{s_k},   S of a straight piece z: z^{(x)k} / k!.
Pieces are joined by Chen's relation S(X * Y) = S(X) (x) S(Y). In Horner form one more piece z changes level k by
    S_k += (..((z/k + S_1) (x) z/(k-1) + S_2) (x) z/(k-2) .. + S_{k-1}) (x) z.
Depth-2 log-signature: (X_T - X_0, Levy areas A_ij), A_ij = 1/2 int (X^i - X^i_0) dX^j - (X^j - X^j_0) dX^i, i < j.
Words are ordered by level, then lexicographically; the empty word, whose term is always 1, is omitted.

Sources: T. Lyons, "Rough paths, signatures and the modelling of functions on streams" (2014, arXiv:1405.4537);
P. Kidger and T. Lyons, "Signatory" (ICLR 2021, arXiv:2001.00706), for the Horner form.
"""

from __future__ import annotations

import itertools
from typing import Any, Literal

import torch
from torch import Tensor

from spdebench.errors import UserError, needs_extra

Backend = Literal["torch", "pysiglib"]


def signature_size(channels: int, depth: int) -> int:
    """Number of words of length 1..depth in ``channels`` letters."""
    return sum(channels**k for k in range(1, depth + 1))


def words(channels: int, depth: int) -> list[tuple[int, ...]]:
    """The words of the terms of a signature, in their order."""
    return [w for k in range(1, depth + 1) for w in itertools.product(range(channels), repeat=k)]


def with_time(paths: Tensor, times: Tensor | None = None) -> Tensor:
    """Paths ``(.., length, channels)`` with time as an additional first channel; by default it runs from 0 to 1."""
    length = paths.shape[-2]
    if times is None:
        times = torch.linspace(0, 1, length, dtype=paths.dtype, device=paths.device)
    if times.shape != (length,):
        raise UserError(f"with_time: expected {length} times, one per point, got shape {tuple(times.shape)}")
    column = times.to(paths)[:, None].expand(*paths.shape[:-1], 1)
    return torch.cat([column, paths], dim=-1)


def signature(paths: Tensor, depth: int, *, basepoint: bool = False, backend: Backend = "torch") -> Tensor:
    """Signatures of paths ``(.., length, channels)``, linear between points: ``(.., d + d^2 + .. + d^depth)``.

    ``basepoint`` starts every path at 0, so that the signature depends on its first value. ``backend="pysiglib"`` needs
    the extra ``fast-sig``. Both backends are differentiable and agree up to rounding.
    """
    _check(paths, depth)
    if basepoint:
        paths = torch.cat([torch.zeros_like(paths[..., :1, :]), paths], dim=-2)
    elif paths.shape[-2] < 2:
        raise UserError("signature: a path needs at least 2 points, got 1; use basepoint=True to start it at 0")
    batch, (length, channels) = paths.shape[:-2], paths.shape[-2:]
    flat = paths.reshape(-1, length, channels)
    if backend == "pysiglib":
        owned = flat.clone(memory_format=torch.contiguous_format)  # pysiglib warns about views
        out: Tensor = _pysiglib().sig(owned, depth).reshape(*batch, -1)
        return out
    if backend != "torch":
        raise UserError(f"signature: backend must be torch or pysiglib, got '{backend}'")
    terms = signature_of_increments(flat.diff(dim=1).permute(1, 2, 0).contiguous(), depth)
    return terms.T.reshape(*batch, -1)


def signature_of_increments(increments: Tensor, depth: int) -> Tensor:
    """Increments ``(steps, channels, paths)`` -> terms ``(words, paths)``; the axis of paths is contiguous.

    Without gradients the state is updated in place (``out=`` buffers); with gradients new tensors are allocated.
    """
    d, count = increments.shape[1:]
    reuse = not (torch.is_grad_enabled() and increments.requires_grad)
    buffers = [increments.new_empty(d**k, count) for k in range(1, depth)] if reuse else [None] * (depth - 1)
    state = _straight(increments[0], depth)
    for z in increments[1:]:
        parts = [z / k for k in range(1, depth + 1)]  # parts[k - 1] = z / k
        for k in range(depth, 1, -1):  # from the top, because each level uses the lower ones before they change
            inner = torch.add(parts[k - 1], state[0], out=buffers[0])
            for j in range(1, k - 1):
                inner = _outer(inner, parts[k - 1 - j], buffers[j])
                inner = torch.add(inner, state[j], out=buffers[j])
            shaped = state[k - 1].view(-1, d, count)
            grown = torch.addcmul(shaped, inner[:, None], z, out=shaped if reuse else None)
            state[k - 1] = grown.view(-1, count)
        state[0] = torch.add(state[0], z, out=state[0] if reuse else None)
    return torch.cat(state)


def log_signature(paths: Tensor) -> Tensor:
    """Depth-2 log-signatures of paths ``(.., length, channels)``: ``(.., d + d(d-1)/2)``, increments then areas.

    Areas are in the order (0,1), (0,2) .. (d-2,d-1), which are the Lyndon words of length 2.
    """
    _check(paths, 2)
    if paths.shape[-2] < 2:
        raise UserError("log_signature: a path needs at least 2 points, got 1")
    channels = paths.shape[-1]
    moved = paths[..., :-1, :] - paths[..., :1, :]
    steps = paths.diff(dim=-2)
    products = moved.transpose(-1, -2) @ steps  # the terms 1/2 z_i z_j of each piece are symmetric and cancel
    i, j = torch.triu_indices(channels, channels, 1, device=paths.device)
    areas = (products[..., i, j] - products[..., j, i]) / 2
    return torch.cat([paths[..., -1, :] - paths[..., 0, :], areas], dim=-1)


def _straight(z: Tensor, depth: int) -> list[Tensor]:
    """The levels z^{(x)k} / k!, k = 1..depth, of the signature of one straight piece z."""
    levels = [z.clone()]
    for k in range(2, depth + 1):
        levels.append(_outer(levels[-1], z / k, None))
    return levels


def _outer(left: Tensor, right: Tensor, buffer: Tensor | None) -> Tensor:
    """The tensor product of (a, paths) and (d, paths) for each path, written into ``buffer`` if given: (a d, paths)."""
    shape = (left.shape[0], right.shape[0], right.shape[1])
    out = torch.mul(left[:, None], right, out=None if buffer is None else buffer.view(shape))
    return out.view(-1, right.shape[1])


def _check(paths: Tensor, depth: int) -> None:
    """Raise an error unless the paths and the depth make sense."""
    if paths.ndim < 2 or not paths.is_floating_point():
        raise UserError(
            f"signature: expected real floating-point paths (.., length, channels), got {paths.dtype} of shape "
            f"{tuple(paths.shape)}"
        )
    if paths.numel() == 0:
        raise UserError(f"signature: the paths are empty, shape {tuple(paths.shape)}")
    if depth < 1:
        raise UserError(f"signature: depth must be at least 1, got {depth}")


def _pysiglib() -> Any:
    """The module of pysiglib for torch, which the extra ``fast-sig`` installs."""
    try:
        import pysiglib.torch_api as api
    except ImportError:
        raise needs_extra("backend 'pysiglib'", "fast-sig") from None
    return api
