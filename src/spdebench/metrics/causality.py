"""A test whether a predictor is causal: the solution u(t) depends only on the noise up to t."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spdebench.errors import UserError
from spdebench.metrics.fields import as_array
from spdebench.metrics.pointwise import mean_without_nan, ratio

Predictor = Callable[[Tensor, Tensor], Any]


@dataclass(frozen=True)
class CausalityGap:
    """``value`` is the largest gap. A predictor that ignores the noise has gap 0 as well, and ``response`` 0."""

    value: float
    cuts: tuple[int, ...]
    gap: np.ndarray
    response: np.ndarray


def causality_gap(
    predict: Predictor, u0: Any, dw: Any, *, cuts: int | Sequence[int] = 4, seed: int = 0
) -> CausalityGap:
    """gap(c) = mean_n || V'(t <= t_c) - V(t <= t_c) || / || V(t <= t_c) ||, V = predict(u0, dw), V' = predict(u0, dw').

    dw' is dw with its increments after t_c replaced by those of another sample, so that its law is unchanged; frame k
    of dw is the increment over the interval that ends at t_k. ``response(c)`` is the same ratio over t > t_c.
    ``predict`` maps u0 ``(N, *points)`` and dw ``(N, frames, *points)`` to u ``(N, frames, *points)``. A solver has
    gap 0 exactly.
    """
    start, noise = (torch.as_tensor(as_array(a, label)) for a, label in ((u0, "u0"), (dw, "dw")))
    if noise.ndim < 3 or start.shape != (noise.shape[0], *noise.shape[2:]):
        raise UserError(
            f"causality_gap: expected u0 (N, *points) and dw (N, frames, *points), got {tuple(start.shape)} and "
            f"{tuple(noise.shape)}"
        )
    n, frames = noise.shape[:2]
    if n < 2:
        raise UserError("causality_gap: at least 2 samples are needed to exchange their noise, got 1")
    cut_frames = _cut_frames(cuts, frames)
    other = _derangement(n, seed).to(noise.device)
    base = _run(predict, start, noise)
    gaps, responses = [], []
    for cut in cut_frames:
        changed = torch.cat([noise[:, : cut + 1], noise[other, cut + 1 :]], dim=1)
        moved = _run(predict, start, changed)
        gaps.append(_relative_change(base[:, : cut + 1], moved[:, : cut + 1]))
        responses.append(_relative_change(base[:, cut + 1 :], moved[:, cut + 1 :]))
    return CausalityGap(float(np.fmax.reduce(gaps)), cut_frames, np.array(gaps), np.array(responses))


def _cut_frames(cuts: int | Sequence[int], frames: int) -> tuple[int, ...]:
    """Frames c in 1..frames-2; evenly spaced if ``cuts`` is a number."""
    if frames < 3:
        raise UserError(f"causality_gap: at least 3 frames are needed to cut between them, got {frames}")
    if isinstance(cuts, int):
        if cuts < 1:
            raise UserError(f"causality_gap: at least 1 cut is needed, got {cuts}")
        return tuple(int(c) for c in np.unique(np.linspace(1, frames - 2, min(cuts, frames - 2)).round()))
    wrong = [c for c in cuts if not 1 <= c <= frames - 2]
    if wrong or not len(cuts):
        raise UserError(f"causality_gap: cuts must be frames in 1..{frames - 2}, got {list(cuts)}")
    return tuple(cuts)


def _derangement(n: int, seed: int) -> Tensor:
    """A permutation without fixed points: one random cycle."""
    order = torch.from_numpy(np.random.default_rng(seed).permutation(n))
    out = torch.empty(n, dtype=torch.long)
    out[order] = order.roll(1)
    return out


def _run(predict: Predictor, u0: Tensor, dw: Tensor) -> Tensor:
    """The prediction without gradients, as a tensor of the shape of ``dw``."""
    with torch.no_grad():
        out = torch.as_tensor(as_array(predict(u0, dw), "the prediction"))
    if out.shape != dw.shape:
        raise UserError(f"causality_gap: predict returned shape {tuple(out.shape)}, expected {tuple(dw.shape)}")
    return out


def _relative_change(base: Tensor, moved: Tensor) -> float:
    """mean_n ||moved - base|| / ||base||; inf if a prediction is not finite."""
    change = (moved - base).flatten(1).double().square().sum(1).cpu().numpy()
    size = base.flatten(1).double().square().sum(1).cpu().numpy()
    return float(mean_without_nan(np.sqrt(ratio(np.nan_to_num(change, nan=np.inf, posinf=np.inf), size))))
