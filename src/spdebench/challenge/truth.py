"""Inputs and truth of a challenge's problem, from the secret, by the solver that makes datasets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from spdebench.challenge.manifest import ChallengeProblem
from spdebench.errors import without_aliasing_warning
from spdebench.noise import KeyedSeed, PartialNoise
from spdebench.solvers import simulate, stored_inputs

ROWS = 256
"""Paths that are solved together."""


def drawn_inputs(problem: ChallengeProblem, seed: KeyedSeed, device: str = "cpu") -> tuple[np.ndarray, np.ndarray]:
    """u0 (n X..) and the given increments (n T X..): those of all noise modes, or only of the seen ones."""
    equation = problem.build()
    seen = equation.truncation if problem.seen is None else problem.seen
    with without_aliasing_warning():
        parts = [stored_inputs(equation, seed, samples, seen, device=device) for samples in _blocks(problem.n)]
    u0, dw = (torch.cat([part[k] for part in parts]).cpu().numpy() for k in range(2))
    return u0, dw


def solved_truth(problem: ChallengeProblem, seed: KeyedSeed, device: str = "cpu") -> np.ndarray:
    """u (n T X..), or the members 1..M of the law of u given the inputs (n M T X..)."""
    equation, members = problem.build(), problem.members or 1
    out = np.empty((problem.n * members, *problem.path_shape), dtype=np.float32)
    with without_aliasing_warning():
        for rows in _blocks(len(out)):
            samples, partial = [row // members for row in rows], None
            if problem.seen is not None:
                partial = PartialNoise(problem.seen, tuple(1 + row % members for row in rows))
            out[rows.start : rows.stop] = simulate(equation, seed, samples, device=device, partial=partial).u.cpu()
    return out if problem.seen is None else out.reshape(problem.n, members, *problem.path_shape)


def _blocks(total: int) -> Iterator[range]:
    return (range(first, min(total, first + ROWS)) for first in range(0, total, ROWS))
