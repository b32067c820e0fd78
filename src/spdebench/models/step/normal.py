"""Least squares for every mode by normal equations: c(k) = (A^H A + ridge)^-1 A^H b, columns of A scaled to size 1.

    G(k) = sum over rows of conj(a_i(k)) a_j(k),     r(k) = sum over rows of conj(a_i(k)) b(k)

A row is a pair (sample, frame). G and r are summed in float64 over blocks of rows, so the memory is
16 bytes x terms^2 x modes, whatever the number of rows: 17 MB for 20 terms on 17^3 points.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

ROUNDING = 1e-14
"""Eigenvalues of the scaled normal equations below this value are rounding, and their directions are left out."""


class Normal:
    """The normal equations of one regression, one system for each mode."""

    def __init__(self) -> None:
        self.gram: Tensor | None = None
        self.right: Tensor | None = None
        self.rows = 0
        self._solved: tuple[tuple[int, ...], Tensor, Tensor, Tensor, Tensor] | None = None

    def add(self, columns: Tensor, target: Tensor) -> None:
        """Add rows: columns (F, B, modes) and target (B, modes), flattened over modes."""
        a = columns.flatten(2).permute(2, 0, 1).contiguous()  # modes, F, B
        b = target.flatten(1).T.unsqueeze(-1).contiguous()  # modes, B, 1
        both = torch.cat((a.transpose(1, 2), b), 2)
        sums = torch.bmm(a.conj(), both)
        count = len(columns)
        if self.gram is None or self.right is None:
            self.gram, self.right = sums[..., :count].clone(), sums[..., count].clone()
        else:
            self.gram += sums[..., :count]
            self.right += sums[..., count]
        self.rows += columns.shape[1]
        self._solved = None

    def solve(self, ridge: float, chosen: Sequence[int] | None = None) -> Tensor:
        """The coefficients c (F', modes) of the chosen columns (by default all); a column that is 0 gets 0."""
        assert self.gram is not None and self.right is not None
        key = tuple(range(self.gram.shape[1]) if chosen is None else chosen)
        if self._solved is None or self._solved[0] != key:
            index = torch.tensor(key, device=self.gram.device)
            gram = self.gram.index_select(1, index).index_select(2, index)
            right = self.right.index_select(1, index)
            size = gram.diagonal(dim1=1, dim2=2).real.clamp_min(0).sqrt()
            size = torch.where(size > 0, size, 1.0)
            scaled = gram / size[:, :, None] / size[:, None, :]
            scaled.diagonal(dim1=1, dim2=2).fill_(1.0)  # a column that is 0 then gets the coefficient 0
            values, vectors = torch.linalg.eigh(scaled)
            turned = (vectors.mH @ (right / size).unsqueeze(-1)).squeeze(-1)
            self._solved = key, values, vectors, turned, size
        _, values, vectors, turned, size = self._solved
        scaled = torch.where(values > ROUNDING, turned / (values.abs() + ridge), 0.0)
        return ((vectors @ scaled.unsqueeze(-1)).squeeze(-1) / size).T.contiguous()
