"""Predictions of trained runs for a challenge: each run is matched with the problem that it was trained for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spdebench.challenge.inputs import Challenge
from spdebench.challenge.manifest import ChallengeProblem
from spdebench.data.identity import from_dict
from spdebench.errors import UserError
from spdebench.progress import Progress
from spdebench.training import Run


def predict_runs(
    challenge: Challenge,
    runs: Sequence[Run],
    *,
    members: int = 32,
    device: str = "cpu",
    progress: bool | None = False,
) -> dict[tuple[str, int], np.ndarray]:
    """(problem, training seed) -> prediction; for a law ``members`` members, or one of a model that predicts a mean."""
    matched: dict[tuple[str, int], tuple[ChallengeProblem, Run]] = {}
    for run in runs:
        problem = matching_problem(challenge, run)
        key = problem.label, run.spec.train_options.seed
        if key in matched:
            raise UserError(f"{matched[key][1].name} and {run.name} are both for {key[0]} with seed {key[1]}")
        matched[key] = problem, run
    out = {}
    with Progress(len(matched), "problems predicted", enabled=progress) as bar:
        for key, (problem, run) in matched.items():
            given = challenge.inputs(problem.label)
            if problem.seen is not None and run.model.draws_members:
                out[key] = run.sample(given.u0, given.dw, members=members, device=device)
            else:
                path = run.predict(given.u0, given.dw, device=device)
                out[key] = path if problem.seen is None else path[:, None]
            bar.advance(1)
    return out


def matching_problem(challenge: Challenge, run: Run) -> ChallengeProblem:
    """The problem with the equation of the run's (first) dataset and the part of the noise that the run is given."""
    first, task = run.spec.datasets[0], run.spec.task_spec
    if "published" not in first:
        equation = from_dict(first).equation
        seen = None if task.seen == equation.truncation else task.seen
        for problem in challenge.manifest.problems:
            if problem.seen == seen and problem.build() == equation and (task.every, task.stride) == (1, 1):
                return problem
    raise UserError(
        f"{run.name} was trained for none of the problems {', '.join(challenge.labels)}: equation with all fields, and "
        f"what is seen of the noise, must be those of the challenge"
    )
