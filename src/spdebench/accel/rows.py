"""g' x over very many rows as a batch of products over pieces of the rows, and a short sum.

One product over 10^5 rows is left to a few of the GPU's processors; pieces of about `PIECE` rows fill it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from spdebench.accel.fused import ours as on_gpu

PIECE = 512  # rows of a piece, about
FEWEST = 8  # pieces; fewer are left to torch


def gram(g: Tensor, x: Tensor) -> Tensor:
    """g' x for g (.., n, C) and x (.., n, D): (.., C, D)."""
    n = g.shape[-2]
    if not splitting_pays(g, n):
        return g.mT @ x
    a, b = in_pieces(g), in_pieces(x)
    return torch.bmm(a.flatten(0, -3).mT, b.flatten(0, -3)).unflatten(0, a.shape[:-2]).sum(-3)


def splitting_pays(x: Tensor, rows: int) -> bool:
    """Whether cutting rows into pieces is worth it: many of them on a GPU."""
    return on_gpu(x) and pieces(rows) > 1


def pieces(rows: int) -> int:
    """Into how many equal pieces rows are cut: the divisor that makes them about `PIECE` long, 1 for few rows."""
    wanted = rows // PIECE
    return next((s for s in range(wanted, wanted // 4, -1) if rows % s == 0), 1) if wanted >= FEWEST else 1


def in_pieces(x: Tensor) -> Tensor:
    """(.., n, C) -> (.., s, n/s, C)."""
    return x.contiguous().unflatten(-2, (pieces(x.shape[-2]), -1))
