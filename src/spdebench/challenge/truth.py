"""Inputs and truth of a challenge's problem, from the secret, by the solver that makes datasets."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from spdebench.challenge.manifest import ChallengeProblem
from spdebench.engines import check_free_memory
from spdebench.errors import without_aliasing_warning
from spdebench.noise import KeyedSeed, PartialNoise
from spdebench.solvers import simulate, stored_inputs

ROWS = 256
"""Paths that are solved together."""


def drawn_inputs(problem: ChallengeProblem, seed: KeyedSeed, device: str = "cpu") -> tuple[np.ndarray, np.ndarray]:
    """u0 (n X..) and the given increments (n T X..): those of all noise modes, or only of the seen ones."""
    equation = problem.build()
    shapes = [(problem.n, *shape) for shape in problem.columns().values()]
    need = 4 * sum(map(math.prod, shapes))
    check_free_memory(need, f"{problem.n} inputs of {problem.label}", "use -n for fewer inputs")
    u0, dw = (np.empty(shape, dtype=np.float32) for shape in shapes)
    with without_aliasing_warning():
        for rows in _blocks(problem.n):
            some = slice(rows.start, rows.stop)
            parts = stored_inputs(equation, seed, rows, problem.seen, device=device)
            u0[some], dw[some] = (part.cpu() for part in parts)
    return u0, dw


def check_memory(problem: ChallengeProblem) -> None:
    """Raise an error if the true solutions of a problem do not fit into the free memory."""
    count = problem.n * (problem.members or 1)
    what = f"the {count} true solutions of {problem.label}"
    instead = "score on a machine with more memory, or make a challenge with fewer inputs or members"
    check_free_memory(4 * count * math.prod(problem.path_shape), what, instead)


def solved_truth(problem: ChallengeProblem, seed: KeyedSeed, device: str = "cpu") -> np.ndarray:
    """u (n T X..), or the members 1..M of the law of u given the inputs (n M T X..)."""
    equation, members = problem.build(), problem.members or 1
    check_memory(problem)
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
