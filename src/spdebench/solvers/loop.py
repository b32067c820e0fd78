"""The one time loop: it reads the increments of the noise interval by interval and writes the stored frames.

On the processor a batch is solved a few samples at a time, so that the fields of a step stay in the cache. Samples are
independent, and the result does not depend on how they are grouped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from spdebench.engines import check_free_memory
from spdebench.equations import Equation, as_equation
from spdebench.equations.scheme import Scheme, make_scheme
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.noise import KeyedSeed, PartialNoise, Seed, Wiener

CPU_POINTS = 1 << 15
"""The most grid points, summed over samples, that are solved together on the processor."""

CPU_COEFFICIENTS = 1 << 17
CUDA_COEFFICIENTS = 1 << 26
"""The most grid coefficients of increments that are computed at once, on a CPU and on a GPU."""


@dataclass(frozen=True)
class Trajectories:
    """The stored frames of a batch: u0 (N X..), dw and u (N T X..), dw[:,0] = 0."""

    u0: Tensor
    dw: Tensor
    u: Tensor

    @staticmethod
    def empty(n: int, frames: int, grid: Grid, dtype: torch.dtype, device: torch.device | str) -> Trajectories:
        """Uninitialised arrays for n samples of frames t_0..t_frames; u0 is a view of u."""
        u = torch.empty((n, frames + 1, *grid.points), dtype=dtype, device=device)
        dw = torch.empty_like(u)
        dw[:, 0] = 0
        return Trajectories(u[:, 0], dw, u)

    def rows(self, first: int, count: int) -> Trajectories:
        """Views of ``count`` samples from ``first`` on."""
        return Trajectories(*(x.narrow(0, first, count) for x in (self.u0, self.dw, self.u)))


def simulate(
    equation: Equation | str,
    seed: Seed,
    samples: Sequence[int],
    *,
    device: torch.device | str = "cpu",
    out_dtype: torch.dtype = torch.float32,
    every: int = 1,
    partial: PartialNoise | None = None,
) -> Trajectories:
    """Solve the equation for the samples of a seed: initial data and noise are functions of (seed, sample).

    ``samples`` are their numbers, such as ``range(4)``. A name means the equation's defaults.
    Solves in float64 and returns ``out_dtype``; only the frames 0, ``every``, 2 ``every``, .. are kept. ``partial``
    replaces the noise modes that are not seen, or leaves them out.
    """
    equation = as_equation(equation)
    if not hasattr(every, "__index__"):
        raise UserError(f"simulate: every must be a whole number, got {every!r}")
    if not 1 <= every <= equation.frames:
        raise UserError(f"simulate: every must be between 1 and the {equation.frames} stored intervals, got {every}")
    if not hasattr(samples, "__len__"):
        raise UserError(f"simulate: samples are the numbers of samples, such as range(4); got {samples!r}")
    if len(samples) and min(samples) < 0:
        raise UserError(f"simulate: the numbers of samples begin with 0, got {min(samples)}")
    if not isinstance(seed, KeyedSeed) and not hasattr(seed, "__index__"):
        raise UserError(f"simulate: seed must be a whole number, got {seed!r}")
    check_memory(equation, len(samples), device)
    grid = equation.solving_grid
    wiener = equation.wiener(grid)
    scheme = make_scheme(equation, equation.horizon / equation.noise_steps, device)
    out = Trajectories.empty(len(samples), equation.frames // every, equation.grid, out_dtype, device)
    size = together(len(samples), grid, device)
    for first in range(0, len(samples), size):
        rows = samples[first : first + size]
        u0 = equation.initial(grid, seed, rows, device)
        noise = partial and partial.of(slice(first, first + size))
        increments = _increments(wiener, scheme, seed, rows, noise)
        advance(equation, scheme, u0, increments, out.rows(first, len(rows)), every)
    check_finite(equation, out.u, samples, every)
    return Trajectories(out.u0.clone(), out.dw, out.u)


NOISE_BYTES = 64  # per noise function of a sample: measured are 8 numbers in the largest array
FIELD_BYTES = 64  # per point of a field that is solved: 8 numbers


def memory_of(equation: Equation, n: int, device: torch.device | str = "cpu") -> int:
    """Estimated bytes for solving n samples: the stored frames, and noise and fields of those solved at a time."""
    grid = equation.solving_grid
    stored = 8 * n * (equation.frames + 1) * math.prod(equation.grid.points)
    functions = int((equation.truncation + 1) ** equation.dim)
    at_once = min(n, together(n, grid, device))
    return stored + at_once * (NOISE_BYTES * functions + FIELD_BYTES * math.prod(grid.points))


def check_memory(equation: Equation, n: int, device: torch.device | str = "cpu") -> None:
    """Raise an error if main memory is too small for solving n samples on the processor."""
    if torch.device(device).type == "cpu":
        points = "x".join(map(str, equation.solving_grid.points))
        what = f"solving {n} samples of {equation.name} with J={equation.truncation} on {points} points"
        check_free_memory(memory_of(equation, n, device), what, "solve fewer samples at a time")


def together(n: int, grid: Grid, device: torch.device | str) -> int:
    """How many of n samples are solved at a time."""
    if torch.device(device).type != "cpu":
        return max(1, n)
    return max(1, CPU_POINTS // math.prod(grid.points))


def seen_noise(
    equation: Equation, seed: Seed, samples: Sequence[int], seen: int | None, *, device: torch.device | str = "cpu"
) -> Tensor:
    """Increments of the noise modes that truncation ``seen`` keeps, on the stored grid: float32, (N T X..), 0 at t_0.
    None keeps all of them.

    They are computed from the stream again and not filtered from dw: where dw aliases, its modes cannot be separated.
    """
    wiener = equation.wiener(equation.solving_grid)
    scheme = make_scheme(equation, equation.horizon / equation.noise_steps, device)
    spectral, stride = scheme.noise_form == "spectral", equation.noise_steps // equation.frames
    partial = None if seen is None else PartialNoise(seen)
    out = torch.zeros((len(samples), equation.frames + 1, *equation.grid.points), device=device)
    size = together(len(samples), equation.solving_grid, device)
    for first in range(0, len(samples), size):
        rows = samples[first : first + size]
        n, total = 0, torch.zeros(())
        for block in _increments(wiener, scheme, seed, rows, partial):
            for increment in block.unbind(1):
                total = increment if n % stride == 0 else total + increment
                n += 1
                if n % stride == 0:
                    out[first : first + len(rows), n // stride] = to_stored(total, spectral, equation)
    return out


def stored_inputs(
    equation: Equation, seed: Seed, samples: Sequence[int], seen: int | None, *, device: torch.device | str = "cpu"
) -> tuple[Tensor, Tensor]:
    """u0 (N X..) and `seen_noise` (N T X..) on the stored grid, without solving; without ``seen`` this noise is dw."""
    u0 = to_stored(equation.initial(equation.solving_grid, seed, samples, device), False, equation)
    return u0.float(), seen_noise(equation, seed, samples, seen, device=device)


def _increments(
    wiener: Wiener, scheme: Scheme, seed: Seed, samples: Sequence[int], partial: PartialNoise | None = None
) -> Iterator[Tensor]:
    """dW of all noise intervals on the solving grid, as `Scheme.noise_form` says, in blocks of time."""
    eq = scheme.equation
    on_grid = wiener.physical if scheme.noise_form == "physical" else wiener.spectral
    budget = CPU_COEFFICIENTS if torch.device(scheme.device).type == "cpu" else CUDA_COEFFICIENTS
    group = eq.steps // eq.noise_steps
    for z in wiener.blocks(seed, samples, eq.steps, eq.horizon, group=group, device=scheme.device, partial=partial):
        length = max(1, budget // (len(z) * math.prod(wiener.grid.spectral_shape)))
        for part in torch.split(z, length, dim=1):
            yield on_grid(part)


def solve(equation: Equation | str, u0: Tensor, dw: Tensor) -> Tensor:
    """u (N T X..) for given initial data u0 (N X..) and increments dw (N T X.., dw[:,0] ignored) on the stored grid.

    From a stored u0 and dw this gives the stored u again, up to the rounding of float32, if the file holds every step
    and every point of the solver: edition ``paper`` of all equations but wave, nse and allen_cahn. If the file holds
    only some time steps (every fifth of wave, tenth of nse, fourth of allen_cahn), an increment is spread evenly over
    its steps; if it holds only some points or modes (nse, edition ``converged``), the noise and the initial datum lack
    the modes that the stored grid does not resolve. The card of a dataset states the difference.

    ``dw`` may have ``frames`` or ``steps`` intervals; the result has ``frames`` + 1 frames, in float64.
    """
    equation, u0, dw = as_equation(equation), torch.as_tensor(u0), torch.as_tensor(dw)
    stored, grid = equation.grid, equation.solving_grid
    shape = (u0.shape[0], dw.shape[1] if dw.ndim > 1 else 0, *stored.points)
    counts = {equation.frames + 1, equation.noise_steps + 1}
    if tuple(u0.shape[1:]) != stored.points or tuple(dw.shape) != shape or shape[1] not in counts:
        wanted = " or ".join(str(c) for c in sorted(counts))
        raise UserError(
            f"solve: expected u0 (N, {', '.join(map(str, stored.points))}) and dw (N, {wanted}, "
            f"{', '.join(map(str, stored.points))}); got {tuple(u0.shape)} and {tuple(dw.shape)}"
        )
    device = dw.device
    scheme = make_scheme(equation, equation.horizon / equation.noise_steps, device)
    out = Trajectories.empty(len(u0), equation.frames, stored, torch.float64, device)
    repeats = equation.noise_steps // (shape[1] - 1)
    start = between(stored, grid, u0.to(dtype=torch.float64, device=device))

    def increments() -> Iterator[Tensor]:
        for k in range(1, shape[1]):
            values = between(stored, grid, dw[:, k : k + 1].to(torch.float64) / repeats)
            values = values.expand(-1, repeats, *grid.points)
            yield values if scheme.noise_form == "physical" else grid.transform(values)

    advance(equation, scheme, start, increments(), out)
    check_finite(equation, out.u, range(len(u0)))
    return out.u


def advance(
    equation: Equation, scheme: Scheme, u0: Tensor, increments: Iterable[Tensor], out: Trajectories, every: int = 1
) -> None:
    """Step through all noise intervals and write every ``every``-th frame into ``out``.

    ``increments`` yields blocks of time, (N, intervals, ..), in the scheme's `noise_form`.
    """
    stride = equation.noise_steps // equation.frames * every
    spectral = scheme.noise_form == "spectral"
    total: Tensor | None = None
    state = scheme.start(u0)
    out.u[:, 0] = to_stored(u0, False, equation)
    n = 0
    for block in increments:
        if stride == 1:  # all frames of a block in one transform
            out.dw[:, n + 1 : n + 1 + block.shape[1]] = to_stored(block, spectral, equation)
        for increment in block.unbind(1):
            state = scheme.step(state, increment)
            total = increment if total is None else total + increment
            n += 1
            if n % stride == 0:
                out.u[:, n // stride] = to_stored(scheme.field(state), False, equation)
                if stride > 1:
                    out.dw[:, n // stride] = to_stored(total, spectral, equation)
                total = None


def to_stored(values: Tensor, spectral: bool, equation: Equation) -> Tensor:
    """Values at the stored points of a field on the solving grid, given as values or (``spectral``) coefficients.

    The stored points are a subset of the solving grid's, or the field is cut to the modes that the stored grid resolves
    (`Equation.strided`).
    """
    grid, stored = equation.solving_grid, equation.grid
    if equation.strided or grid.points == stored.points:
        field = grid.inverse(values) if spectral else values
        for axis, n, m in zip(grid.axes, grid.points, stored.points, strict=True):
            field = torch.unflatten(field, axis, (m, n // m)).select(axis, 0)
        return field
    return stored.inverse(grid.resize(values, stored)) if spectral else between(grid, stored, values)


def between(source: Grid, target: Grid, field: Tensor) -> Tensor:
    """The values of ``field`` on another grid of the same box, computed from the modes that both grids resolve."""
    if source.points == target.points:
        return field
    return target.inverse(source.resize(source.transform(field), target))


def check_finite(equation: Equation, u: Tensor, samples: Sequence[int], every: int = 1) -> None:
    """Refuse non-finite trajectories of every ``every``-th frame; the message names the sample, the step, a remedy."""
    bad = ~torch.isfinite(u.flatten(2).sum(-1))  # a sum is finite only if all its terms are, and cheap
    if not bool(bad.any()):
        return
    sample, frame = (int(i) for i in bad.nonzero()[0])
    step = frame * every * (equation.steps // equation.frames)
    dt = equation.horizon / equation.noise_steps / equation.substeps
    raise UserError(
        f"{equation.name}: non-finite at step {step} of {equation.steps}, sample {samples[sample]}; "
        f"dt={dt:.3g} is too large. Try steps={equation.steps * 4} or substeps={equation.substeps * 4}"
    )
