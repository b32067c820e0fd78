"""The one time loop: noise intervals in, stored frames out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from spdebench.equations import Equation
from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.solvers.base import Scheme, make_scheme


@dataclass(frozen=True)
class Trajectories:
    """Stored frames of a batch: u0 (N X..), dw and u (N T X..), dw[:,0] = 0."""

    u0: Tensor
    dw: Tensor
    u: Tensor


def simulate(
    equation: Equation,
    seed: int,
    samples: Sequence[int],
    *,
    device: torch.device | str = "cpu",
    out_dtype: torch.dtype = torch.float32,
    every: int = 1,
) -> Trajectories:
    """Solve the equation for the samples of a seed: initial data and noise are functions of (seed, sample).

    Computed in float64, given back as ``out_dtype``; ``every`` keeps each so-many-th frame only.
    """
    grid = equation.solving_grid
    wiener = equation.wiener(grid)
    scheme = make_scheme(equation, equation.horizon / equation.noise_steps, device)
    u0 = equation.initial(grid, seed, samples, device)

    def increments() -> Iterator[Tensor]:
        group = equation.steps // equation.noise_steps
        for z in wiener.blocks(seed, samples, equation.steps, equation.horizon, group=group, device=device):
            yield wiener.physical(z) if scheme.noise_form == "physical" else wiener.spectral(z)

    return _advance(equation, scheme, u0, increments(), out_dtype, every)


def solve(equation: Equation, u0: Tensor, dw: Tensor) -> Tensor:
    """u (N T X..) for given initial data u0 (N X..) and increments dw (N T X.., dw[:,0] ignored) on the stored grid.

    From a stored u0 and dw this gives back the stored u, up to the rounding of float32, where storage dropped nothing:
    edition ``paper`` of phi41, kdv and kpz. Where frames were dropped (wave: 5 steps a frame) a sum of increments is
    spread evenly over its steps; where modes were dropped (edition ``converged``: those beyond the stored grid) the
    noise and the initial datum lack them. The difference is part of the floor that a dataset's card states.
    ``dw`` may have ``frames`` or ``steps`` intervals; the result has ``frames`` + 1 frames, in float64.
    """
    u0, dw = torch.as_tensor(u0), torch.as_tensor(dw)
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
    repeats = equation.noise_steps // (shape[1] - 1)
    start = _between(stored, grid, u0.to(dtype=torch.float64, device=device))

    def increments() -> Iterator[Tensor]:
        for k in range(1, shape[1]):
            values = _between(stored, grid, dw[:, k : k + 1].to(torch.float64) / repeats)
            values = values.expand(-1, repeats, *grid.points)
            yield values if scheme.noise_form == "physical" else grid.transform(values)

    return _advance(equation, scheme, start, increments(), torch.float64, 1).u


def _advance(
    equation: Equation,
    scheme: Scheme,
    u0: Tensor,
    increments: Iterable[Tensor],
    out_dtype: torch.dtype,
    every: int,
) -> Trajectories:
    """Step through all noise intervals; ``increments`` yields blocks of them in the scheme's form."""
    stored, grid, frames = equation.grid, equation.solving_grid, equation.frames // every
    stride = equation.noise_steps // frames
    shape = (u0.shape[0], frames + 1, *stored.points)
    u = torch.empty(shape, dtype=out_dtype, device=u0.device)
    dw = torch.zeros(shape, dtype=out_dtype, device=u0.device)
    total: Tensor | None = None
    state = scheme.start(u0)
    u[:, 0] = _between(grid, stored, u0)
    n = 0
    for block in increments:
        for increment in block.unbind(1):
            state = scheme.step(state, increment)
            total = increment if total is None else total + increment
            n += 1
            if n % stride == 0:
                dw[:, n // stride] = _stored_noise(total, scheme.noise_form == "spectral", grid, stored)
                u[:, n // stride] = _between(grid, stored, scheme.field(state))
                total = None
    _guard(equation, u)
    return Trajectories(u[:, 0].clone(), dw, u)


def _between(source: Grid, target: Grid, field: Tensor) -> Tensor:
    """The field on another grid of the same box, through the modes that both resolve."""
    if source.points == target.points:
        return field
    return target.inverse(source.resize(source.transform(field), target))


def _stored_noise(values: Tensor, spectral: bool, grid: Grid, stored: Grid) -> Tensor:
    """The increment at the stored points, from coefficients or values on the solving grid."""
    return stored.inverse(grid.resize(values, stored)) if spectral else _between(grid, stored, values)


def _guard(equation: Equation, u: Tensor) -> None:
    """Refuse non-finite trajectories, naming sample, step and a remedy."""
    bad = ~torch.isfinite(u).flatten(2).all(-1)
    if not bool(bad.any()):
        return
    sample, frame = (int(i) for i in bad.nonzero()[0])
    step = frame * equation.steps // (u.shape[1] - 1)
    dt = equation.horizon / equation.noise_steps / equation.substeps
    raise UserError(
        f"{equation.name}: non-finite at step {step} of {equation.steps}, sample {sample} of the batch; "
        f"dt={dt:.3g} is too large. Try steps={equation.steps * 4} or substeps={equation.substeps * 4}"
    )
