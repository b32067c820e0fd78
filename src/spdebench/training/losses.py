"""Losses over space and t_1..t_T, one value per sample, averaged over the batch.

    loss = (1/B) sum_b |A (V_b - U_b)| / |A U_b|,      A = 1 (rel_l2),   A = w_k^{1/2} (1 + |kappa_k|^2)^{1/2} F (w12)

F is the transform of the grid and w_k its Parseval weights, so that the values are those of the metrics `rel_l2` and
`w12`. The frame t_0 is an input and is left out. A sample with U = 0 has no relative error and is left out too. The
authors' code sums over the batch; for Adam the mean is the same up to its epsilon and the effect of weight decay.

The energy score of m draws X_1..X_m against one target, in L2 of space, averaged over the frames t_1..t_T (`energy`):

    loss = (1/B) sum_b mean_t ( (1/m) sum_d |X_bd - U_b| - 1/(2 m (m-1)) sum_{d != e} |X_bd - X_be| ) / c

c is the mean of |U| over the training part. The score is proper and has no bias in m: in expectation no law of X has a
smaller loss than the law of U given the inputs.

The mean square over space and t_1..t_T (`flow`), in units of the variance c^2 of U over the training part:

    loss = (1/B) sum_b mean_{t,x} |V_b - Y_b|^2 / c^2,      V the velocity of a flow at a random time, Y its target
"""

from __future__ import annotations

from typing import Literal, Protocol

import torch
from torch import Tensor

from spdebench.grids import Grid
from spdebench.models.base import check_output


class Loss(Protocol):
    """The loss of each sample is ``errors(v, u)`` times a scale, which depends on the targets only."""

    def errors(self, prediction: Tensor, target: Tensor) -> Tensor: ...

    def __call__(self, prediction: Tensor, target: Tensor, scale: Tensor) -> Tensor: ...


class RelativeLoss:
    """The loss of each sample is ``errors(v, u) * scale(u)``; the scale depends on the targets only."""

    def __init__(self, kind: Literal["rel_l2", "w12"], grid: Grid, device: torch.device | str = "cpu") -> None:
        self.grid = grid
        self.root: Tensor | None = None
        if kind == "w12":
            weights = grid.multiplicity(device) * (1 - grid.laplacian(device=device))
            self.root = weights.sqrt().float()
            if grid.periodic:
                self.root = self.root.unsqueeze(-1)  # the same weight for real and imaginary parts

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


class EnergyLoss:
    """The energy score of ``draws`` predictions of each target: prediction b + d B is draw d of target b."""

    def __init__(self, draws: int) -> None:
        self.draws = draws

    def errors(self, prediction: Tensor, target: Tensor) -> Tensor:
        """The energy score of each sample; the gradient of a norm at 0 is 0."""
        check_output(prediction, (self.draws * len(target), *target.shape[1:]))
        members = prediction.float().unflatten(0, (self.draws, len(target)))
        to_target = torch.stack([frame_norms(member - target) for member in members]).mean(0)
        # each pair counts for (d, e) and (e, d)
        pairs = [frame_norms(members[d] - members[e]) for d in range(self.draws) for e in range(d)]
        return (to_target - torch.stack(pairs).sum(0) / (self.draws * (self.draws - 1))).mean(1)

    def __call__(self, prediction: Tensor, target: Tensor, scale: Tensor) -> Tensor:
        """The mean over the samples."""
        return (self.errors(prediction, target) * scale).mean()


class SquaredLoss:
    """The mean square of V - Y over space and t_1..t_T."""

    def errors(self, prediction: Tensor, target: Tensor) -> Tensor:
        check_output(prediction, tuple(target.shape))
        return (prediction.float() - target)[:, 1:].square().flatten(1).mean(1)

    def __call__(self, prediction: Tensor, target: Tensor, scale: Tensor) -> Tensor:
        """The mean over the samples."""
        return (self.errors(prediction, target) * scale).mean()


def frame_norms(field: Tensor) -> Tensor:
    """The L2 norm over space of each sample and frame t_1..t_T, (B, T-1), up to the volume of a grid cell."""
    later = field[:, 1:]
    norms: Tensor = torch.linalg.vector_norm(later, dim=tuple(range(2, later.ndim)))
    return norms


def mean_norm(target: Tensor) -> float:
    """The mean of |U| over samples and frames t_1..t_T."""
    parts = [frame_norms(block).double().sum() for block in target.split(64)]
    return float(torch.stack(parts).sum()) / (len(target) * (target.shape[1] - 1)) if len(target) else 0.0


def variance(target: Tensor) -> float:
    """The mean over space and t_1..t_T of the variance over samples."""
    later = target[:, 1:]
    mean = later.mean(0)
    parts = [(block - mean).double().square().sum() for block in later.split(64)]
    return float(torch.stack(parts).sum()) / max(1, later.numel()) if len(target) else 0.0
