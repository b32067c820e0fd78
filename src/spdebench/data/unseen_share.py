"""The fraction of the variance that is due to unseen noise, in a dataset with ``seen``.

    of the noise      sum of the eigenvalues of the functions that are not seen / Tr Q
    of the solution   E Var(u | u0, seen noise) / Var(u), both summed over space and t_1..t_T, measured from members

The second is the relative squared error of the best point prediction, the conditional mean, in the variance of u.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdebench.data.store import Dataset
from spdebench.equations import Equation
from spdebench.errors import UserError

INPUTS = 60
"""The most inputs of the test part from which the fraction is measured; a file of members may be large."""
TOGETHER = 4
"""The number of inputs whose members are in memory at a time."""


@dataclass(frozen=True)
class UnseenShare:
    """The unseen fractions of the variance of the noise and of the solution (None if there are no members)."""

    seen: int
    noise: float
    solution: float | None = None
    inputs: int = 0
    members: int = 0

    def __str__(self) -> str:
        text = f"{100 * self.noise:.3g} % of the noise's variance (by its trace)"
        if self.solution is not None:
            text += (
                f" and {100 * self.solution:.3g} % of the solution's (E Var(u | input) / Var(u), measured from "
                f"{self.members} members of {self.inputs} inputs)"
            )
        return text


def noise_share(equation: Equation, seen: int) -> float:
    """The fraction of the trace of Q that belongs to basis functions which truncation ``seen`` does not keep."""
    basis = equation.series()
    eigenvalues = equation.eigenvalue_roots() ** 2 * (basis.index > 0)
    return float(eigenvalues[~basis.kept_by(seen)].sum() / eigenvalues.sum())


def unseen_share(dataset: Dataset) -> UnseenShare | None:
    """Both fractions of a dataset; None if all of its noise is seen, or if the noise is unknown."""
    if dataset.imported or dataset.spec.seen is None:
        return None
    seen = dataset.spec.seen
    noise = noise_share(dataset.equation, seen)
    if dataset.spec.members > 1:
        return UnseenShare(seen, noise)
    try:
        file = dataset.members_file
    except UserError:
        return UnseenShare(seen, noise)
    inputs = min(INPUTS, len(file.spec.inputs))
    return UnseenShare(seen, noise, _solution_share(dataset, inputs), inputs, file.spec.members)


def _solution_share(dataset: Dataset, inputs: int) -> float | None:
    """E Var(u | input) / Var(u) from unbiased variances: over members of one input, and over inputs of one member."""
    if inputs < 2:
        return None
    within, first, second = 0.0, np.zeros(()), np.zeros(())
    for start in range(0, inputs, TOGETHER):
        u = dataset.members(start, min(start + TOGETHER, inputs))[:, :, 1:].astype(np.float64)
        within += float(u.var(axis=1, ddof=1).sum())
        first, second = first + u.sum(axis=0), second + (u**2).sum(axis=0)
    total = float(((second - first**2 / inputs) / (inputs - 1)).mean(axis=0).sum())  # the mean over members
    return within / inputs / total if total > 0 else None
