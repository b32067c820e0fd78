"""W(t,x) = sum_q sqrt(lambda_q) beta_q(t) phi_q(x): a truncated Wiener process on a grid.

One realisation, (seed, sample), is the same at every truncation, dyadic time step, grid, batch and device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from spdebench.grids import Grid
from spdebench.noise import paths
from spdebench.noise.bases import Basis
from spdebench.noise.stream import sample_states

CPU_BLOCK = 1 << 17
CUDA_BLOCK = 1 << 26


@dataclass(frozen=True)
class Wiener:
    """A basis, the square roots of its eigenvalues (pairs, 2), a grid, and whether the grid gets values or projections.

    ``projected`` False: the series is evaluated at the grid points, where it aliases if the grid is too coarse.
    """

    basis: Basis
    roots: Tensor
    grid: Grid
    projected: bool = False

    @property
    def aliases(self) -> bool:
        """Whether several functions of the series alias onto one coefficient."""
        return not self.projected and not self.basis.resolved_by(self.grid)

    @property
    def trace(self) -> float:
        """Tr Q = sum of the eigenvalues in use."""
        return float((self.roots**2)[self.basis.index > 0].sum())

    def blocks(
        self,
        seed: int,
        samples: Sequence[int],
        steps: int,
        horizon: float,
        *,
        group: int = 1,
        device: torch.device | str = "cpu",
    ) -> Iterator[Tensor]:
        """Weighted pairs of increments, ``group`` steps summed, in time blocks: (samples, block, pairs), complex128."""
        states = sample_states(seed, "noise", samples, device)
        roots = self.roots.to(device)
        budget = CPU_BLOCK if torch.device(device).type == "cpu" else CUDA_BLOCK
        white = bool((roots == 1).all())
        modes = self.basis.modes.to(device)
        for z in paths.blocks(states, modes, steps, horizon, budget, group):
            if not white:
                torch.view_as_real(z).mul_(roots)
            yield z

    def spectral(self, z: Tensor) -> Tensor:
        """Coefficients on the grid."""
        return self.basis.projected(z, self.grid) if self.projected else self.basis.spectral(z, self.grid)

    def physical(self, z: Tensor) -> Tensor:
        """Values at the grid points."""
        return self.grid.inverse(self.spectral(z)) if self.projected else self.basis.physical(z, self.grid)

    def increments(self, seed: int, samples: Sequence[int], steps: int, horizon: float) -> Tensor:
        """dW at the grid points for all steps: (samples, steps, points). For studies and tests; solvers use blocks."""
        return torch.cat([self.physical(z) for z in self.blocks(seed, samples, steps, horizon)], dim=1)
