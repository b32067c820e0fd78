"""Relative losses over space and t_1..t_T, one value per sample, averaged over the batch.

    loss = (1/B) sum_b |A (V_b - U_b)| / |A U_b|,      A = 1 (rel_l2),   A = w_k^{1/2} (1 + |kappa_k|^2)^{1/2} F (w12)

F is the transform of the grid and w_k its Parseval weights, so that the values are those of the metrics `rel_l2` and
`w12`. The frame t_0 is an input and is left out. A sample with U = 0 has no relative error and is left out too. The
authors' code sums over the batch; for Adam the mean is the same up to its epsilon and the effect of weight decay.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from spdebench.grids import Grid
from spdebench.models.base import check_output


class RelativeLoss:
    """The loss of each sample is ``errors(v, u) * scale(u)``; the scale depends on the targets only."""

    def __init__(self, kind: Literal["rel_l2", "w12"], grid: Grid, device: torch.device | str = "cpu") -> None:
        self.grid = grid
        self.root: Tensor | None = None
        if kind == "w12":
            weights = grid.multiplicity(device) * (1 - grid.laplacian(device=device))
            self.root = weights.sqrt().float()
            if grid.periodic:
                self.root = self.root.unsqueeze(-1)  # real and imaginary part have one weight

    def to(self, device: torch.device | str) -> RelativeLoss:
        """The same loss for tensors on another device."""
        other = object.__new__(RelativeLoss)
        other.grid, other.root = self.grid, None if self.root is None else self.root.to(device)
        return other

    def norm(self, field: Tensor) -> Tensor:
        """|A f| of each sample over t_1..t_T; its gradient at f = 0 is 0."""
        later = field[:, 1:]
        if self.root is not None:
            coefficients = self.grid.transform(later)
            if coefficients.is_complex():
                coefficients = torch.view_as_real(coefficients)
            later = coefficients * self.root
        norm: Tensor = torch.linalg.vector_norm(later, dim=tuple(range(1, later.ndim)))
        return norm

    def scale(self, target: Tensor) -> Tensor:
        """1 / |A U| of each sample, 0 where U = 0."""
        size = self.norm(target)
        return torch.where(size > 0, 1 / size, torch.zeros_like(size))

    def errors(self, prediction: Tensor, target: Tensor) -> Tensor:
        check_output(prediction, tuple(target.shape))
        return self.norm(prediction.float() - target)

    def __call__(self, prediction: Tensor, target: Tensor, scale: Tensor) -> Tensor:
        """The mean over the samples that have a relative error."""
        return (self.errors(prediction, target) * scale).sum() / (scale > 0).sum().clamp_min(1)
