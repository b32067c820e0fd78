"""Submissions in the form of runs, to rank them with ours: each scored prediction becomes a record of its problem."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from spdebench import spec
from spdebench.challenge import Scored, Submission
from spdebench.data import DatasetSpec
from spdebench.errors import UserError
from spdebench.records import Record
from spdebench.report.board.shown import ShownRun
from spdebench.report.formatting import fingerprint
from spdebench.suites import CORE, SUITES, SuiteProblem
from spdebench.tasks import TaskSpec, subsampling


def shown_submissions(found: Iterable[Submission]) -> list[ShownRun]:
    """Every score of these submissions as a run."""
    return [_shown(each, scored) for each in found for scored in each.results]


def _shown(submission: Submission, scored: Scored) -> ShownRun:
    """One score of a submission as a run."""
    card = submission.card
    data, task = identity_of(problem_of(submission, scored), scored.seen)
    digest = fingerprint([submission.name, *scored.key])
    record = Record(
        digest=digest,
        name=submission.name,
        model=card.title,
        config={"submission": submission.name},
        datasets=(data,),
        task=task,
        options={"seed": scored.seed},
        parameters=card.parameters,
        scores=scored.scores,
        training_seconds=60 * card.training_minutes,
    )
    return ShownRun(digest, record, submission=submission, scored=scored)


def problem_of(submission: Submission, scored: Scored) -> SuiteProblem:
    """The problem that a score is for."""
    if scored.suite in SUITES:
        for problem in SUITES[scored.suite].problems:
            if problem.name == scored.problem:
                return problem
    known = f" {scored.suite}' lists its problems" if scored.suite in SUITES else "' lists the suites"
    raise UserError(
        f"submission {submission.name}: there is no problem {scored.problem} of the suite {scored.suite}; "
        f"'spdebench suite{known}"
    )


def identity_of(problem: SuiteProblem, seen: int | None = None) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Dataset and task of a problem as in records; ``seen`` is the truncation of the noise that a model is given."""
    equation = problem.build()
    data = DatasetSpec(equation=equation, n=problem.n, seed=problem.seed, seen=seen)
    task = TaskSpec(**{"inputs": equation.task, **subsampling(equation), **problem.task, "seen": seen})
    return data.to_dict(), spec.to_dict(task)


@functools.cache
def suite_problems() -> Mapping[str, str]:
    """Suite and name of the problems of the core suite, by the fingerprint of dataset and task."""
    return {
        fingerprint([[data], task]): f"core suite: {p.name}" for p in CORE.problems for data, task in [identity_of(p)]
    }
