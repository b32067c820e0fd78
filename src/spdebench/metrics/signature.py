"""Errors of the law of the path t -> u(t, x): expected signatures of (t, u(t, x)), compared at each point x."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from spdebench.metrics.base import Measurement, Metric, require
from spdebench.metrics.bootstrap import Statistic
from spdebench.metrics.fields import Pair
from spdebench.metrics.scores import Kind
from spdebench.signatures import Backend, signature, signature_of_increments, signature_size

PATHS = {"cpu": 6000}  # paths computed at a time, so that their signatures stay in the cache; on a GPU a whole block
CODE_BATCH = 20  # samples per batch over which the paper's code averages


def terms(values: Tensor, times: Tensor, depth: int, backend: Backend) -> Tensor:
    """Signatures of the paths (t, value), values ``(points, frames, N)`` -> ``(words, points, N)``, float32."""
    count, frames, n = values.shape
    if backend == "pysiglib":
        flat = values.transpose(1, 2).reshape(-1, frames)
        paths = torch.stack([times.to(flat).expand_as(flat), flat], dim=-1)
        return signature(paths, depth, backend=backend).T.reshape(-1, count, n)
    increments = values.new_empty(frames - 1, 2, count * n)
    increments[:, 0] = times.diff().to(values)[:, None]
    increments[:, 1] = values.diff(dim=1).transpose(0, 1).reshape(frames - 1, -1)
    return signature_of_increments(increments, depth).view(-1, count, n)


class _Gaps:
    """Sums over points computed from the gaps S(V_n) - S(U_n); ``keep`` stores the gaps for resampling."""

    def __init__(self, pair: Pair, keep: bool, compat: bool) -> None:
        self.pair, self.keep, self.compat = pair, keep, compat
        self.total = self.debiased = self.code = 0.0
        self.pseudo = np.zeros(pair.samples_count)
        self.kept: list[Tensor] = []

    def add(self, gap: Tensor) -> None:
        """Add the gaps of some points, ``(words, points, N)``."""
        n = self.pair.samples_count
        mean = gap.mean(-1, dtype=torch.float64)
        norm = mean.square().sum(0).sqrt()
        self.total += float(norm.sum())
        if self.compat:
            batches = [part.mean(-1, dtype=torch.float64).abs().sum() for part in gap.split(CODE_BATCH, dim=-1)]
            self.code += float(torch.stack(batches).mean())
        if self.keep:
            own = gap.square().sum((0, 2), dtype=torch.float64)
            self.debiased += float(((n * norm**2 - own / n) / (n - 1)).clamp(min=0).sqrt().sum())
            towards = torch.where(norm > 0, mean / norm, 0.0).float()
            self.pseudo += torch.einsum("wpn,wp->n", gap, towards).double().cpu().numpy()
            self.kept.append(gap)

    def resample(self) -> Statistic:
        """W -> mean_x || sum_n w_n gap_n / sum_n w_n ||_2."""

        def statistic(weights: np.ndarray) -> np.ndarray:
            shares = torch.from_numpy(weights / weights.sum(1, keepdims=True)).to(self.pair.device, torch.float32)
            total = torch.zeros(len(weights), dtype=torch.float64, device=self.pair.device)
            for gap in self.kept:
                total += torch.linalg.vector_norm(gap @ shares.T, dim=0).sum(0, dtype=torch.float64)
            return (total / self.pair.space).cpu().numpy()

        return statistic


@dataclass(frozen=True)
class SignatureW1(Metric, name="sigw1", title="Sig-W1"):
    """(1/D) sum_i || (1/N) sum_n S(t, U_ni) - (1/N) sum_n S(t, V_ni) ||_2, S truncated at depth m = 5.

    Source: the paper, "Sig-W1 metric", on t_1..t_T, time from 0 to 1, levels unscaled. It does not detect an offset
    that is constant in time, and for small noise it is the error of the mean path; `sigw1_std` has neither defect.
    ``debiased`` uses the unbiased square of each norm. ``compat`` computes what the paper's code does (l1 norm, mean
    over batches of 20). Per-sample values are jackknife pseudo-values. ``backend=pysiglib`` needs the extra
    ``fast-sig``.
    """

    depth: int = 5
    compat: bool = False
    backend: Backend = "torch"
    kind: ClassVar[Kind] = "law"

    def __post_init__(self) -> None:
        require(1 <= self.depth <= 8, f"{self.name}: depth must lie in 1..8, got {self.depth}")

    def refuses(self, pair: Pair) -> str | None:
        return None if pair.steps > 1 else "needs at least 2 scored frames, got 1"

    def _paths(self, pair: Pair) -> tuple[Tensor, Iterator[tuple[Tensor, Tensor]]]:
        """Times, and blocks of values ``(points, frames, N)`` of V and U, minus their first frame, in float32."""
        blocks = ((v - v[:, :1], u - u[:, :1]) for _, v, u in pair.points(self._bytes_per_point(pair)))
        return torch.linspace(0, 1, pair.steps), ((v.float(), u.float()) for v, u in blocks)

    def _bytes_per_point(self, pair: Pair) -> int:
        """The memory that the signatures at one point need."""
        return pair.samples_count * (6 * pair.frames_count + 2 * signature_size(2, self.depth)) * 4

    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement:
        gaps = _Gaps(pair, samples and not self.compat, self.compat)
        times, blocks = self._paths(pair)
        size = max(1, PATHS.get(pair.device.type, sys.maxsize) // pair.samples_count)
        for v, u in blocks:
            for part_v, part_u in zip(v.split(size), u.split(size), strict=True):
                gap = terms(part_v, times, self.depth, self.backend)
                gaps.add(gap.sub_(terms(part_u, times, self.depth, self.backend)))
        if self.compat:
            return Measurement(gaps.code / pair.space)
        value = gaps.total / pair.space
        if not samples:
            return Measurement(value)
        details = {"debiased": gaps.debiased / pair.space}
        return Measurement(value, gaps.pseudo / pair.space, "mean", None, details, gaps.resample())


@dataclass(frozen=True)
class StandardisedSignatureW1(SignatureW1, name="sigw1_std", title="Sig-W1, standardised"):
    """(1/D) sum_i || (1/N) sum_n S(t, u_ni) - (1/N) sum_n S(t, v_ni) ||_2, u = (U - mean_n U)/s, v = (V - mean_n U)/s.

    Source: Sig-W1 after one affine map of both V and U; s is the standard deviation of U about its mean field. t_0 is
    included (where stored) and every path starts at 0, so that offsets are detected; depth m = 4. The value hardly
    depends on the noise level. NaN if the truth does not vary.
    """

    depth: int = 4
    compat: ClassVar[bool] = False  # type: ignore[misc]  # the paper's code has no such form

    def refuses(self, pair: Pair) -> str | None:
        return None

    def _paths(self, pair: Pair) -> tuple[Tensor, Iterator[tuple[Tensor, Tensor]]]:
        mean, unit = pair.mean_truth.T.to(pair.dtype), pair.spread_truth

        def centred(values: Tensor, where: slice) -> Tensor:
            away = ((values - mean[where, :, None]) / unit).float()
            return torch.cat([torch.zeros_like(away[:, :1]), away], dim=1)

        times = torch.linspace(0, 1, pair.frames_count)
        blocks = pair.points(self._bytes_per_point(pair), t0=True)
        return torch.cat([times[:1], times]), ((centred(v, at), centred(u, at)) for at, v, u in blocks)

    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement:
        if pair.nonfinite_with_t0.any():
            return Measurement(float("inf"))
        if pair.spread_truth == 0:
            return Measurement(float("nan"), details={"truth_std": 0.0})
        out = super().measure(pair, samples=samples)
        out.details.update(truth_std=pair.spread_truth, includes_t0=pair.has_t0)
        return out
