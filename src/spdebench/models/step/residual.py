"""The law of the residual of the step: r_n = u_{n+1} - sum_j c_j phi_j(u_n, seen dw_{n+1}).

    plain        F[r](k) = s(k) g_k,                   g_k ~ N(0, 1) complex, independent over modes and steps
    amplitude    r(x) = m(a) + s(a) zeta(x),           a = u_n(x), or a = what the step predicts for u_{n+1}(x)
    quantiles    r(x) = Q(a, zeta(x)),                 Q(a, .) increasing: any distribution, whose spread depends on a

zeta is a Gaussian field of variance 1 with the spectrum s(k) of the normal scores of r. `plain` is the law for additive
noise. Multiplicative noise has an amplitude that depends on the state. If a step is long compared with the drift (a
double well), the residual may have two peaks, which quantiles represent. m, s and Q are tables over 24 intervals of a
that contain equally many values, with linear interpolation. With ``memory`` the drawn coefficients follow a recursion
z_{n+1}(k) = rho(k) z_n(k) + .., because noise that enters through a velocity acts on more than one step.

The numbers g are a function of (seed, sample, member, step, point): a batch that is split gives the same members.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from spdebench.grids import Grid
from spdebench.models.step.rollout import Paths, Stepper, named
from spdebench.noise.stream import normal_pairs

SHAPES = ("plain", "amplitude", "quantiles")
STATES = ("u", "v")
"""The state on which a local law depends: u_n, or v, what the step predicts for u_{n+1}."""
BINS, SCORES, TOP = 24, 25, 3.0
"""The number of intervals of the state, and the number and range -TOP..TOP of the normal scores in a table."""
LEAST = 400
"""The fewest values that an interval of the state contains."""
MOST_VALUES = 1 << 22
"""About how many values of the residual are used to make a table."""
SURE = 4.0
"""An autocorrelation counts if it is this many standard errors from 0."""


@dataclass(frozen=True)
class Kind:
    """Which law: its shape, the state on which it depends, and whether residuals of adjacent steps are correlated."""

    shape: str = "plain"
    state: str = "u"
    memory: bool = False

    def __post_init__(self) -> None:
        if self.shape not in SHAPES or self.state not in STATES:
            raise ValueError(f"a residual has no law of the kind {self.shape!r}, {self.state!r}")

    @property
    def label(self) -> str:
        """The kind of law in words, for the notes of a run."""
        of = {"u": "u_n", "v": "the predicted u_{n+1}"}[self.state]
        local = f"{self.shape} that depend on {of}" if self.shape == "quantiles" else f"{self.shape} depending on {of}"
        words = [local if self.shape != "plain" else "Gaussian in each mode"]
        return "; ".join([*words, *(["correlated with the step before"] if self.memory else [])])


@dataclass
class LocalLaw:
    """m + s z or Q(a, z) at the centres of intervals of a: values (bins, scores)."""

    centres: Tensor
    values: Tensor

    def __call__(self, state: Tensor, z: Tensor) -> Tensor:
        """The residual at points with this state and this normal score; bilinear, linear beyond the last score."""
        if len(self.centres) == 1:
            row, along = torch.zeros_like(state, dtype=torch.long), torch.zeros_like(state)
            above = row
        else:
            row = (torch.searchsorted(self.centres, state.contiguous()) - 1).clamp(0, len(self.centres) - 2)
            above = row + 1
            along = ((state - self.centres[row]) / (self.centres[above] - self.centres[row])).clamp(0, 1)
        place = (z + TOP) * ((SCORES - 1) / (2 * TOP))
        left = place.floor().clamp(0, SCORES - 2).long()
        part = (place - left).clamp(-1, 2)
        flat = self.values.flatten()

        def at(index: Tensor) -> Tensor:
            start = flat[index * SCORES + left]
            return start + part * (flat[index * SCORES + left + 1] - start)

        low = at(row)
        return low + along * (at(above) - low)


@dataclass
class StepLaw:
    """The law of the residual of one map."""

    deviation: Tensor  # (modes..): standard deviation of F[r](k)
    scale: Tensor  # (modes..): that of the Gaussian coefficients that are drawn
    memory: Tensor  # (modes..): their correlation with those of the step before; 0 unless it counts
    table: LocalLaw | None  # of a local law


@dataclass
class Residual:
    """The laws of the residuals of all maps, on the grid of the training data."""

    grid: Grid
    kind: Kind
    laws: list[StepLaw]

    def start(self, states: Tensor, grid: Grid) -> ResidualDraws:
        """Draws for paths on a grid, each path with its own state of the stream of random numbers."""
        return ResidualDraws(self, states, grid)


class ResidualDraws:
    """The residuals of some paths, one step after the other."""

    def __init__(self, law: Residual, states: Tensor, grid: Grid) -> None:
        self.law, self.states, self.grid = law, states, grid
        own = law.grid
        count = math.prod(own.points)
        self.modes = torch.arange((count + 1) // 2, device=states.device)
        self.unit = math.sqrt(count * (1.0 if own.periodic else 0.5**own.dim))
        self.before: Tensor | None = None

    def white(self, n: int) -> Tensor:
        """Independent coefficients with E|g_k|^2 = 1, real where the grid's are: (paths, modes..)."""
        own = self.law.grid
        node = torch.tensor([n], device=self.states.device)
        pairs = torch.view_as_real(normal_pairs(self.states, node, self.modes, self.unit)).flatten(1)
        return own.transform(pairs[:, : math.prod(own.points)].reshape(-1, *own.points))

    def __call__(self, n: int, u: Tensor, v: Tensor) -> Tensor:
        """Coefficients of the residual of step n from those of u_n and of v, the prediction of u_{n+1}."""
        law = self.law.laws[min(n, len(self.law.laws) - 1)]
        z = law.scale * self.white(n)
        if self.before is not None and self.law.kind.memory:
            z = law.memory * self.before + (1 - law.memory.abs() ** 2).clamp_min(0).sqrt() * z
        self.before = z
        z = self.law.grid.resize(z, self.grid)
        if law.table is None:
            return z
        state = self.grid.inverse(u if self.law.kind.state == "u" else v)
        return self.grid.transform(law.table(state, self.grid.inverse(z)))


# --- fitting -------------------------------------------------------------------------------------------------------
def one_step(stepper: Stepper, paths: Paths, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Coefficients (S, modes..) of u_n, of the prediction of u_{n+1} from the true frames, and of its error."""
    one = stepper.maps[min(n, len(stepper.maps) - 1)]
    grid, lags = stepper.grid, range(one.history + 1)
    past = [grid.transform(paths.u[:, n - lag].double()) for lag in lags]
    noise = [grid.transform(paths.dw[:, n + 1 - lag].double()) for lag in lags]
    v = one.apply(stepper.dictionary, named(past, noise), n / max(paths.frames - 1, 1))
    return past[0], v, grid.transform(paths.u[:, n + 1].double()) - v


def fit_residual(stepper: Stepper, paths: Paths, kind: Kind, values: int = MOST_VALUES) -> Residual:
    """The law of the residuals of these paths, fitted to about this number of ``values`` for each map."""
    last = len(stepper.maps) - 1
    steps = [[n] for n in range(last)] + [list(range(last, paths.frames - 1))]
    grid = stepper.grid
    return Residual(grid, kind, [_fit_steps(stepper, paths, kind, numbers, values) for numbers in steps])


def _fit_steps(stepper: Stepper, paths: Paths, kind: Kind, steps: Sequence[int], values: int) -> StepLaw:
    """The law of the residuals of some steps, which have one map."""
    grid = stepper.grid
    points = math.prod(grid.points)
    one = stepper.maps[min(steps[0], len(stepper.maps) - 1)]
    rows = len(paths) * len(steps)
    fitted = sum(len(stage.terms) for stage in one.stages)
    correction = rows / max(rows - fitted, rows / 4)  # of the variance, for the fitted coefficients
    most = max(2, values // (points * len(steps)))
    first = Paths(paths.u[:most], paths.dw[:most])
    parts = [one_step(stepper, first, n) for n in steps]
    square = sum(r.abs().square().mean(0) for _, _, r in parts) / len(steps)
    assert isinstance(square, Tensor)
    deviation = (correction * square).sqrt()
    if kind.shape == "plain":
        drawn, table, scale = [r for _, _, r in parts], None, deviation
    else:
        place = STATES.index(kind.state)
        state = torch.stack([grid.inverse(part[place]) for part in parts])
        r = math.sqrt(correction) * torch.stack([grid.inverse(part[2]) for part in parts])
        table, scores = _table(kind, state, r)
        drawn = [grid.transform(z) for z in scores]
        scale = torch.stack([z.abs().square().mean(0) for z in drawn]).mean(0).sqrt()
        variance = (grid.multiplicity(scale.device) * scale**2).sum()
        scale = scale / variance.sqrt().clamp_min(1e-300) * _unit_variance(grid)
    memory = torch.zeros_like(drawn[0][0])
    if kind.memory and len(steps) > 1:
        memory = _memory(drawn)
    return StepLaw(deviation, scale, memory, table)


def _unit_variance(grid: Grid) -> float:
    """The root mean square of a field of variance 1; below 1 on a Dirichlet grid, which has points where it is 0."""
    return 1.0 if grid.periodic else math.sqrt(math.prod((n - 1) / n for n in grid.points))


def _memory(drawn: Sequence[Tensor]) -> Tensor:
    """The autocorrelation E conj(z_n) z_{n+1} / E|z|^2 of each mode, 0 if it is not significant."""
    joint, size = torch.zeros_like(drawn[0][0]), torch.zeros_like(drawn[0][0].real)
    for before, after in pairwise(drawn):
        joint += (before.conj() * after).sum(0)
        size += 0.5 * (before.abs().square() + after.abs().square()).sum(0)
    found = joint / size.clamp_min(1e-300)
    pairs = len(drawn[0]) * (len(drawn) - 1)
    found = torch.where(found.abs() > SURE / math.sqrt(pairs), found, 0.0)
    return found / (found.abs() / 0.99).clamp_min(1.0)


def _table(kind: Kind, state: Tensor, r: Tensor) -> tuple[LocalLaw, Tensor]:
    """The table of a local law fitted to residuals r at points with this state; and the normal scores of r."""
    flat, values = state.flatten(), r.flatten()
    bins = max(1, min(BINS, len(flat) // LEAST))
    order = flat.argsort()
    z_grid = torch.linspace(-TOP, TOP, SCORES, dtype=torch.float64, device=r.device)
    levels = torch.special.ndtr(z_grid)
    centres, rows = [], []
    scores = torch.empty_like(values)
    for index in order.tensor_split(bins):
        inside = values[index]
        centres.append(flat[index].mean())
        if kind.shape == "amplitude":
            mean, std = inside.mean(), inside.std().clamp_min(1e-300)
            rows.append(mean + std * z_grid)
            scores[index] = (inside - mean) / std
        else:
            rows.append(_quantiles(inside, levels))
            rank = torch.empty_like(inside)
            rank[inside.argsort()] = torch.arange(len(inside), dtype=rank.dtype, device=rank.device)
            scores[index] = torch.special.ndtri((rank + 0.5) / len(inside))
    centre = torch.stack(centres)
    centre = centre + torch.arange(bins, device=r.device) * 1e-12 * (centre.abs().max() + 1e-300)  # strictly increasing
    return LocalLaw(centre, torch.stack(rows)), scores.reshape(r.shape)


def _quantiles(values: Tensor, levels: Tensor) -> Tensor:
    """The quantiles of the values at these levels, by linear interpolation."""
    ordered = values.sort().values
    place = levels * (len(values) - 1)
    low = place.floor().long().clamp(max=len(values) - 2)
    return torch.lerp(ordered[low], ordered[low + 1], place - low)


# --- as tensors of a file ------------------------------------------------------------------------------------------
def packed(law: Residual) -> tuple[Tensor, Tensor]:
    """(maps, 3, modes..): deviation, scale and memory; and (maps, bins, 1 + scores): centres and values, or empty."""
    kind = law.laws[0].memory.dtype
    modes = torch.stack([torch.stack([x.to(kind) for x in (a.deviation, a.scale, a.memory)]) for a in law.laws])
    tables = [a.table for a in law.laws if a.table is not None]
    if not tables:
        return modes, modes.real.new_zeros(0) if modes.is_complex() else modes.new_zeros(0)
    bins = max(len(t.centres) for t in tables)
    rows = []
    for t in tables:  # a table with fewer intervals repeats its last one
        index = torch.arange(bins, device=modes.device).clamp(max=len(t.centres) - 1)
        late = (torch.arange(bins, device=modes.device) - index) * (t.centres.abs().max() + 1.0)
        rows.append(torch.cat(((t.centres[index] + late)[:, None], t.values[index]), 1))
    return modes, torch.stack(rows)


def unpacked(grid: Grid, kind: Kind, maps: int, modes: Tensor, tables: Tensor) -> Residual:
    """The law that `packed` has written; raises ValueError if the tensors are not those of such a law."""
    if tuple(modes.shape) != (maps, 3, *grid.spectral_shape):
        raise ValueError(f"the residual has the shape {tuple(modes.shape)}")
    local = kind.shape != "plain"
    if local and not (tables.ndim == 3 and len(tables) == maps and 1 <= tables.shape[1] <= BINS):
        raise ValueError(f"the table of the residual has the shape {tuple(tables.shape)}")
    if local and tables.shape[2] != 1 + SCORES:
        raise ValueError(f"the table of the residual has {tables.shape[2]} columns")
    if not (bool(torch.isfinite(torch.view_as_real(modes) if modes.is_complex() else modes).all())):
        raise ValueError("the residual is not finite")
    if local and not (bool(torch.isfinite(tables).all()) and bool((tables[:, 1:, 0] > tables[:, :-1, 0]).all())):
        raise ValueError("the table of the residual is not finite or not ordered")
    if bool((modes[:, 2].abs() > 1).any()):
        raise ValueError("a correlation of residuals is larger than 1")
    laws = []
    for i in range(maps):
        deviation, scale, memory = modes[i]
        real: tuple[Any, ...] = tuple(x.real.clone() if x.is_complex() else x for x in (deviation, scale))
        table = LocalLaw(tables[i, :, 0].contiguous(), tables[i, :, 1:].contiguous()) if local else None
        laws.append(StepLaw(real[0], real[1], memory, table))
    return Residual(grid, kind, laws)
