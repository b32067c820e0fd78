"""g' x over very many rows, computed as a batch of products over pieces of the rows and a short sum.

cuBLAS computes one product over 10^5 rows on only a few of the GPU's multiprocessors. With pieces of about `PIECE` rows
all of them work.
"""

from __future__ import annotations

import torch
from torch import Tensor

from spdebench.accel.dispatch import on_gpu

PIECE = 512  # rows per piece, about
FEWEST = 8  # pieces; with fewer, one product by torch is as fast


def gram(g: Tensor, x: Tensor) -> Tensor:
    """g' x for g (.., n, C) and x (.., n, D): (.., C, D)."""
    n = g.shape[-2]
    if not splitting_pays(g, n):
        return g.mT @ x
    a, b = in_pieces(g), in_pieces(x)
    out: Tensor = torch.bmm(a.flatten(0, -3).mT, b.flatten(0, -3)).unflatten(0, a.shape[:-2]).sum(-3)
    return out


def splitting_pays(x: Tensor, rows: int) -> bool:
    """Whether cutting the rows into pieces is faster: on a GPU, with many rows."""
    return on_gpu(x) and pieces(rows) > 1


def pieces(rows: int) -> int:
    """Number of equal pieces: the divisor of ``rows`` that makes pieces about `PIECE` long, 1 for few rows."""
    wanted = rows // PIECE
    return next((s for s in range(wanted, wanted // 4, -1) if rows % s == 0), 1) if wanted >= FEWEST else 1


def in_pieces(x: Tensor) -> Tensor:
    """The rows cut into s equal pieces: (.., n, C) -> (.., s, n/s, C)."""
    out: Tensor = x.contiguous().unflatten(-2, (pieces(x.shape[-2]), -1))
    return out
