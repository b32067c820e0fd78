"""W(t,x) = sum_q sqrt(lambda_q) beta_q(t) phi_q(x): a truncated Wiener process on a grid.

One realisation, (seed, sample), is the same at every truncation, dyadic time step, grid, batch and device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from spdebench.grids import Grid
from spdebench.noise import paths
from spdebench.noise.base import Basis
from spdebench.noise.stream import Seed, States, member_states, sample_states

CPU_BLOCK = 1 << 17
CUDA_BLOCK = 1 << 26
"""About how many pairs of normal numbers a time block has, on a CPU and on a GPU."""


@dataclass(frozen=True)
class PartialNoise:
    """Noise whose modes up to truncation ``seen`` are those of a sample; ``member`` says what the other modes are.

    0: those of the sample too; 1, 2, ..: drawn again from the stream of that member (one number for all samples, or one
    for each); None: zero. Members are independent draws of the noise given its seen part.
    """

    seen: int
    member: int | tuple[int, ...] | None = None

    def of(self, rows: slice) -> PartialNoise:
        """This partial noise for the samples in ``rows``."""
        return replace(self, member=self.member[rows]) if isinstance(self.member, tuple) else self


@dataclass(frozen=True)
class Wiener:
    """The truncated series on a grid: a basis, the square roots of its eigenvalues (pairs, 2), and the grid.

    If ``projected``, the series is projected onto the grid's modes; if not, it is evaluated at the grid points, where
    it aliases if the grid is too coarse.
    """

    basis: Basis
    roots: Tensor
    grid: Grid
    projected: bool = False

    @property
    def trace(self) -> float:
        """Tr Q = sum of the eigenvalues in use."""
        return float((self.roots**2)[self.basis.index > 0].sum())

    def blocks(
        self,
        seed: Seed,
        samples: Sequence[int],
        steps: int,
        horizon: float,
        *,
        group: int = 1,
        device: torch.device | str = "cpu",
        partial: PartialNoise | None = None,
    ) -> Iterator[Tensor]:
        """Increments of sqrt(lambda_q) beta_q as pairs, summed over ``group`` steps, in time blocks.

        Each block is (samples, intervals, pairs), complex128. ``partial`` replaces or leaves out the functions that are
        not seen; the bits of the seen ones do not change.
        """
        roots = self.roots.to(device)
        budget = CPU_BLOCK if torch.device(device).type == "cpu" else CUDA_BLOCK
        white = bool((roots == 1).all())
        modes = self.basis.modes.to(device)

        def normals(states: States) -> Iterator[Tensor]:
            return paths.blocks(states, modes, steps, horizon, budget, group)

        blocks = normals(sample_states(seed, "noise", samples, device))
        if partial is not None and partial.member != 0:
            blocks = self._completed(blocks, partial, normals, seed, samples, device)
        for z in blocks:
            if not white:
                torch.view_as_real(z).mul_(roots)
            yield z

    def _completed(
        self,
        blocks: Iterator[Tensor],
        partial: PartialNoise,
        normals: Callable[[States], Iterator[Tensor]],
        seed: Seed,
        samples: Sequence[int],
        device: torch.device | str,
    ) -> Iterator[Tensor]:
        """The ``blocks`` with the functions that are not seen replaced by those of the member, or by zero."""
        kept = self.basis.kept_by(partial.seen).to(device)
        if partial.member is None:
            for z in blocks:
                torch.view_as_real(z).mul_(kept)
                yield z
            return
        kept = kept | (torch.as_tensor(partial.member, device=device).reshape(-1, 1, 1, 1) == 0)  # member 0: all kept
        others = normals(member_states(seed, samples, partial.member, device))
        for z, other in zip(blocks, others, strict=True):
            yield torch.view_as_complex(torch.where(kept, torch.view_as_real(z), torch.view_as_real(other)))

    def functions(self, at_once: int = 128) -> Iterator[Tensor]:
        """The grid's coefficients of sqrt(lambda_q) phi_q for all q, ``at_once`` functions at a time: (n, spectrum)."""
        for part, unit in ((0, 1.0), (1, 1.0j)):
            for pairs in (self.basis.index[:, part] > 0).nonzero().flatten().split(at_once):
                z = torch.zeros(len(pairs), self.basis.pairs, dtype=torch.complex128)  # one function in each row
                z[torch.arange(len(pairs)), pairs] = self.roots[pairs, part].to(z.dtype) * unit
                yield self.spectral(z)

    def spectral(self, z: Tensor) -> Tensor:
        """The grid's coefficients of the series with pairs ``z``: (.., pairs) -> (.., spectrum)."""
        return self.basis.projected(z, self.grid) if self.projected else self.basis.spectral(z, self.grid)

    def physical(self, z: Tensor) -> Tensor:
        """The values of the series with pairs ``z`` at the grid points: (.., pairs) -> (.., points)."""
        return self.grid.inverse(self.spectral(z)) if self.projected else self.basis.physical(z, self.grid)

    def increments(self, seed: Seed, samples: Sequence[int], steps: int, horizon: float) -> Tensor:
        """dW at the grid points for all steps: (samples, steps, points). For studies and tests; solvers use blocks."""
        return torch.cat([self.physical(z) for z in self.blocks(seed, samples, steps, horizon)], dim=1)
