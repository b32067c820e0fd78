"""The learned step and its rollout: u_{n+1} = sum_j c_j phi_j(u_n, .., dw_{n+1}, ..) mode by mode, from u_0 on.

A map has one or more stages; stage s+1 may use v_s, the prediction of u_{n+1} by stage s (an exponential Runge-Kutta
method with learned coefficients). With a history of h earlier frames the first h steps have maps of their own, since a
model is given u_0 only. The rollout uses its own predictions and the increments up to the present frame: it is causal.

Values far outside the range of the training data are cut: every mode at ``envelope``, ENVELOPE times its largest
amplitude in the training part. A polynomial step is not a contraction on modes with little signal (phases of KdV);
without the cut one path in a hundred blows up there. A ``bounded`` step also cuts the values u(x) at the largest |u| of
the training part and goes on from there; if residuals are drawn (`residual`), the bound is CUT times as large. If a
path of another step exceeds RANGE times the largest |u| of the training part and of its own u_0, it is replaced from
that frame on by the path that is cut at this largest |u|. A step without products of u is linear, and large values are
no sign of divergence. So no rollout contains NaN, and it stays causal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from spdebench.grids import Grid
from spdebench.models.step.dictionary import Dictionary, Term, noise_terms

BLOCK = 48 << 20
"""About how many bytes one block of columns or of rolled-out samples has."""
ENVELOPE = 20.0
"""A mode is cut at this many times its largest amplitude in the training part."""
RANGE = 3.0
"""A path has diverged beyond this many times the largest |u| of the training part."""
CUT = 1.2
"""Where residuals are drawn, values are cut at this many times the largest |u| of the training part."""
SILENT = 1e-13
"""A mode whose noise has at most this fraction of the largest power contains only rounding of float32."""
GOLDEN = (5**0.5 - 1) / 2
"""Multiples of this number, modulo 1, are spread evenly over [0, 1]."""


@dataclass
class Stage:
    """Terms and their coefficients (F, modes..)."""

    terms: list[Term]
    weights: Tensor


@dataclass
class Map:
    """One step of the rollout: its stages, of which the last makes the prediction, and its number of earlier frames."""

    history: int
    stages: list[Stage] = field(default_factory=list)

    def predictions(self, dictionary: Dictionary, fields: dict[str, Tensor], t: Tensor | float) -> dict[str, Tensor]:
        """The fields of step n and v_1, v_2, .., the predictions of u_{n+1} by each stage; all coefficients."""
        out = dict(fields)
        for number, stage in enumerate(self.stages, 1):
            columns = dictionary.columns(stage.terms, out, t)
            total = stage.weights[0] * columns[0]
            for weight, column in zip(stage.weights[1:], columns[1:], strict=True):
                total.addcmul_(column, weight)
            out[f"v{number}"] = total
        return out

    def apply(self, dictionary: Dictionary, fields: dict[str, Tensor], t: Tensor | float) -> Tensor:
        """Coefficients of u_{n+1} from those of the fields of step n."""
        last, frame = f"v{len(self.stages)}", dictionary.frame
        if frame is None:
            return self.predictions(dictionary, fields, t)[last]
        moved = self.predictions(dictionary, frame.aligned(fields), t)[last]
        return frame.move(moved, frame.shift(fields["u"], fields["w"]))


class Draws(Protocol):
    """Residuals of some paths, drawn step by step: coefficients from those of u_n and of the prediction of u_{n+1}."""

    def __call__(self, n: int, u: Tensor, v: Tensor) -> Tensor: ...


class RandomPart(Protocol):
    """A law from which every step of a rollout adds a draw; ``states`` are those of the random stream, one per path."""

    def start(self, states: Tensor, grid: Grid) -> Draws: ...


@dataclass
class Stepper:
    """The learned step: a map for each of the first steps and, last, the one for all others."""

    dictionary: Dictionary
    maps: list[Map]
    envelope: Tensor  # (modes..): the largest amplitude that a mode may have
    largest: float  # |u| at the points, beyond which a path has diverged
    intervals: int  # from t = 0 to T of the training part; terms with t use t_n/T, also on a longer path
    bounded: bool = False  # values u(x) are cut at the largest |u| of the training part

    @property
    def grid(self) -> Grid:
        return self.dictionary.grid

    def rollout(
        self,
        u0: Tensor,
        dw: Tensor,
        *,
        replace: bool = True,
        random: RandomPart | None = None,
        states: Tensor | None = None,
    ) -> Tensor:
        """u (B T X..) in float64 from u0 (B X..) and dw (B T X..).

        With ``replace``, paths that leave the range of the training data are replaced as described above. With
        ``random`` every step adds a draw of it, for path b from the state ``states[b]``, and values are cut at CUT
        times the largest |u| of the training part.
        """
        drawn = random is not None and states is not None
        bound = (CUT if drawn else 1.0) / RANGE * self.largest if self.bounded or drawn else torch.inf
        out = self._cut_at(u0.new_full((len(u0),), bound, dtype=torch.float64), u0, dw, random, states)
        if replace and random is None and not self.bounded and not self.linear:
            self._replace_wild(u0, dw, out)
        return out

    @property
    def paths_at_once(self) -> int:
        """How many paths take a step together, so that the columns of their terms have about BLOCK bytes."""
        width = max(len(stage.terms) for one in self.maps for stage in one.stages) + 4
        points = math.prod(self.grid.points) * (2**self.grid.dim if self.dictionary.work is not self.grid else 1)
        return max(1, BLOCK // (8 * points * width))

    @property
    def linear(self) -> bool:
        """Whether no term of any stage has a product of u with itself, with the noise or with a mean of u."""
        terms = (term for one in self.maps for stage in one.stages for term in stage.terms)
        return all(term.linear and not term.mean and not term.square for term in terms)

    @property
    def silent(self) -> Tensor:
        """(modes..): true where dw has no coefficient in any stage, because there was no noise in training."""
        known = torch.zeros(self.grid.spectral_shape, dtype=torch.bool, device=self.envelope.device)
        for stage in (stage for one in self.maps for stage in one.stages):
            known |= (stage.weights[noise_terms(stage.terms)] != 0).any(0)
        return ~known

    def known_noise(self, dw: Tensor) -> Tensor:
        """dw (B T X..) without noise in `silent` modes, whose products with u would act on the others in a way that was
        never fitted. Paths without such noise, up to rounding, are returned as they are."""
        silent = self.silent
        if not silent.any():
            return dw
        out, size = dw.clone(), max(1, BLOCK // (32 * dw[0].numel()))
        for first in range(0, len(dw), size):
            part = out[first : first + size]
            c = self.grid.transform(part.double())
            power = c.abs().square().sum(1)
            new = power[:, silent].amax(1) > SILENT * power.flatten(1).amax(1)
            if new.any():
                part[new] = self.grid.inverse(c[new] * ~silent).to(dw.dtype)
        return out

    def _cut_at(
        self, bound: Tensor, u0: Tensor, dw: Tensor, random: RandomPart | None = None, states: Tensor | None = None
    ) -> Tensor:
        """The paths with values cut at ``bound`` (B), one for each path; inf does not cut."""
        frames, size = dw.shape[1], self.paths_at_once
        out = torch.empty(dw.shape, dtype=torch.float64, device=dw.device)
        for first in range(0, len(dw), size):
            rows = slice(first, first + size)
            draws = None if random is None or states is None else random.start(states[rows], self.grid)
            self._roll(u0[rows].double(), dw[rows], out[rows], frames, bound[rows], draws)
        return out

    def left_range(self, u: Tensor, start: Tensor | float = 0.0) -> Tensor:
        """(B, T): true from the first frame on at which a path (B T X..) leaves the range of the training data.

        If ``start`` (B), the largest |u_0|, is larger than the largest |u| of these data, the range is that of u_0.
        """
        limit = torch.as_tensor(RANGE * start, dtype=u.dtype, device=u.device).clamp_min(self.largest)
        return (~(u.abs().flatten(2).amax(2) <= limit.reshape(-1, 1))).cummax(1).values

    def _replace_wild(self, u0: Tensor, dw: Tensor, out: Tensor) -> None:
        """Replace paths that leave the range, from there on, by bounded ones."""
        start = u0.double().abs().flatten(1).amax(1)
        left_range = self.left_range(out, start)
        rows = left_range[:, -1].nonzero()[:, 0]
        if len(rows):
            bounded = self._cut_at(start[rows].clamp_min(1.0 / RANGE * self.largest), u0[rows], dw[rows])
            shape = (*left_range[rows].shape, *(1,) * self.grid.dim)
            out[rows] = torch.where(left_range[rows].reshape(shape), bounded, out[rows])

    def _roll(
        self, u0: Tensor, dw: Tensor, out: Tensor, frames: int, bound: Tensor, draws: Draws | None = None
    ) -> None:
        """Write one block of rolled-out paths into ``out``."""
        out[:, 0] = u0
        history, cut = self.maps[-1].history, not bool(bound.isposinf().all())
        bound = bound.reshape(-1, *(1,) * self.grid.dim)
        past = [self.grid.transform(u0)]
        noise: list[Tensor] = []
        for n in range(frames - 1):
            noise = [self.grid.transform(dw[:, n + 1].double()), *noise[:history]]
            one = self.maps[min(n, len(self.maps) - 1)]
            fields = named(past[: one.history + 1], noise[: one.history + 1])
            t = n / max(self.intervals, 1)
            c = torch.nan_to_num(one.apply(self.dictionary, fields, t), posinf=0.0, neginf=0.0)
            if draws is not None:
                c = c + draws(n, past[0], c)
            c *= (self.envelope / c.abs().clamp_min(1e-300)).clamp(max=1.0)
            out[:, n + 1] = self.grid.inverse(c)
            if cut and bool((out[:, n + 1].abs() > bound).any()):
                out[:, n + 1].clamp_(-bound, bound)
                c = self.grid.transform(out[:, n + 1])
            past = [c, *past[:history]]


def named(past: Sequence[Tensor], noise: Sequence[Tensor]) -> dict[str, Tensor]:
    """The fields by name: u, u1, u2, .. are u_n, u_{n-1}, u_{n-2}, .., and w, w1, .. are dw_{n+1}, dw_n, .."""
    fields = {f"u{i or ''}": c for i, c in enumerate(past)}
    return fields | {f"w{i or ''}": c for i, c in enumerate(noise)}


@dataclass
class Paths:
    """Samples for a regression: u (S T X..) and the increments dw; a row of the regression is a pair (sample, step).

    ``silent`` (modes..) marks the modes in which dw contains only rounding, because their noise is not seen; there the
    coefficient of dw is set to 0.
    """

    u: Tensor
    dw: Tensor
    silent: Tensor | None = None

    def __len__(self) -> int:
        return len(self.u)

    @property
    def frames(self) -> int:
        return self.u.shape[1]

    def with_silent_modes(self, grid: Grid) -> Paths:
        """The same paths with ``silent`` set: modes in which dw has at most SILENT times the largest power."""
        power = torch.zeros(grid.spectral_shape, dtype=torch.float64, device=self.dw.device)
        for n in range(1, self.frames):
            power += grid.transform(self.dw[:, n].double()).abs().square().sum(0)
        return Paths(self.u, self.dw, power <= SILENT * power.max())

    def range(self, grid: Grid) -> tuple[Tensor, float]:
        """The envelope of the modes and the largest |u| of a rollout, for `Stepper`."""
        peak = torch.zeros(grid.spectral_shape, dtype=torch.float64, device=self.u.device)
        for frames in self.u.flatten(0, 1).split(max(64, BLOCK // (16 * self.u[0, 0].numel()))):
            peak = torch.maximum(peak, grid.transform(frames.double()).abs().amax(0))
        return ENVELOPE * peak, RANGE * max(float(self.u.abs().max()), 1e-30)

    def blocks(
        self, grid: Grid, history: int, only: int | None, most: int, width: int
    ) -> Iterator[tuple[dict[str, Tensor], Tensor, Tensor]]:
        """Blocks of rows: the fields by name, the target u_{n+1} and t_n/T.

        The rows are those of step ``only``, or at most ``most`` rows out of all steps that have this history.
        """
        samples, steps = len(self), self.frames - 1 - history
        if only is not None:
            row = torch.arange(min(samples, most))
            step = torch.full_like(row, only)
        else:
            index = torch.arange(min(samples * steps, most))
            row, step = index % samples, history + index // samples
            if most < samples * steps:  # all samples, with steps that are spread evenly
                step = history + (index * GOLDEN % 1 * steps).long()
        size = max(64, BLOCK // (16 * width * self.u[0, 0].numel()))
        for first in range(0, len(row), size):
            s, n = row[first : first + size].to(self.u.device), step[first : first + size].to(self.u.device)
            past = [grid.transform(self.u[s, n - lag].double()) for lag in range(history + 1)]
            noise = [grid.transform(self.dw[s, n + 1 - lag].double()) for lag in range(history + 1)]
            target = grid.transform(self.u[s, n + 1].double())
            yield named(past, noise), target, n.double() / max(self.frames - 1, 1)
