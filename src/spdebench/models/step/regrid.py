"""Coefficients on another grid of the same box: c_j(k) at the same mode k, or at the nearest mode that was fitted.

The intercept is 0 at modes that were not fitted.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from spdebench.grids import Grid
from spdebench.models.step.dictionary import Term


def regrid(weights: Tensor, terms: Sequence[Term], own: Grid, target: Grid) -> Tensor:
    """Weights (F, modes of ``own``) as weights (F, modes of ``target``)."""
    if own.points == target.points:
        return weights
    known = torch.ones(target.spectral_shape, dtype=torch.bool, device=weights.device)
    for axis in range(own.dim):
        n = own.points[axis]
        top = (n - 1) // 2 if own.periodic else n - 1  # the Nyquist mode is only a cosine, of no use on another grid
        k = target.mode_numbers(axis, weights.device)
        nearest = k.clamp(-top, top)
        full = own.periodic and axis < own.dim - 1
        weights = weights.index_select(axis + 1, torch.where(nearest < 0, nearest + n, nearest) if full else nearest)
        known &= (k == nearest).reshape([-1 if a == axis else 1 for a in range(own.dim)])
    constant = [i for i, term in enumerate(terms) if not term.factors]
    weights[constant] = weights[constant] * known
    return weights
