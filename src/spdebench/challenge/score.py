"""Scoring of a submission: the true solutions are computed from the secret, compared with the predictions, and not
stored."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from spdebench.challenge.manifest import ChallengeProblem, Manifest
from spdebench.challenge.predictions import Prediction, open_predictions
from spdebench.challenge.secret import is_sealed, seal
from spdebench.challenge.submission import (
    SCORES_FILE,
    Scored,
    Submission,
    read_scores,
    read_submission,
    scores_text,
)
from spdebench.challenge.truth import check_memory, solved_truth
from spdebench.data.checks import check_device
from spdebench.errors import UserError
from spdebench.files import remove_leftovers, write_text
from spdebench.metrics import Scores, evaluate, law_scores
from spdebench.progress import Progress
from spdebench.records.codec import encode
from spdebench.training.scoring import metric_values
from spdebench.version import __version__

AGAIN = "second run"
"""The name under which a second run is sealed; no submission can have it."""


def score_submission(
    folder: str | os.PathLike[str],
    secret: bytes,
    *,
    own: bool = False,
    device: str = "cpu",
    progress: bool | None = False,
) -> Submission:
    """Score all predictions of a submission and write ``scores.json`` into its folder.

    ``own``: the authors know the secret, so that the truth was not hidden from them; the scores state this.
    """
    check_device(device)
    remove_leftovers(Path(folder) / SCORES_FILE)  # of a process that was killed: no file of others is accepted below
    found = open_predictions(folder, secret)
    for prediction in found.predictions:
        array = prediction.read()  # refuses numbers that are not finite before anything is solved
        check_memory(prediction.problem)  # for the true solutions, besides the prediction
    name, results = found.folder.resolve().name, []
    truth: tuple[ChallengeProblem, np.ndarray] | None = None
    with Progress(len(found.predictions), "predictions scored", enabled=progress) as bar:
        for prediction in found.predictions:
            problem, array = prediction.problem, prediction.read()
            if truth is None or truth[0] != problem:
                truth = None  # frees the memory of the solutions of another problem
                truth = problem, solved_truth(problem, found.manifest.keyed_seed(secret, problem), device)
            scored = _scored(found.manifest, prediction, compared(problem, array, truth[1]), array, not own)
            results.append(sealed(scored, secret, name))
            bar.advance(1)
    submission = Submission(name, found.card, tuple(results))
    write_text(found.folder / SCORES_FILE, scores_text(submission.results))
    return submission


def compared(problem: ChallengeProblem, prediction: np.ndarray, truth: np.ndarray) -> Scores:
    """All metrics of paths, or all scores of laws, with intervals."""
    equation = problem.build()
    times = equation.times.numpy()
    if problem.seen is None:
        return evaluate(prediction, truth, equation.grid, metrics="all", times=times)
    return law_scores(prediction, truth, equation.grid, times=times)


def _scored(manifest: Manifest, prediction: Prediction, scores: Scores, array: np.ndarray, hidden: bool) -> Scored:
    """The scores of one prediction, as they are stored."""
    problem = prediction.problem
    return Scored(
        suite=manifest.suite,
        problem=problem.name,
        seed=prediction.seed,
        n=problem.n,
        scores=metric_values(scores),
        seen=problem.seen,
        members=None if problem.seen is None else array.shape[1],
        hidden=hidden,
        challenge=manifest.commitment,
        version=__version__,
    )


# --- seals: with the secret one can check that scores were not changed ------------------------------------------------
def sealed(scored: Scored, secret: bytes, name: str) -> Scored:
    """The scores with a seal over them and the submission's name."""
    return replace(scored, seal=seal(secret, name, _content(scored)))


def check_seal(scored: Scored, secret: bytes, name: str) -> None:
    """Raise an error unless these scores and those of a second run were sealed with this secret for this name."""
    what = f"of {scored.label}, seed {scored.seed},"
    if not is_sealed(secret, name, _content(scored), scored.seal):
        raise UserError(f"the scores {what} were changed since they were made, or are not those of {name}")
    if scored.again is not None and not is_sealed(secret, AGAIN, [scored.seal, scored.again], scored.again_seal):
        raise UserError(f"the second run {what} was not noted by 'spdebench challenge reproduce'")


def _content(scored: Scored) -> object:
    return encode(replace(scored, seal="", again=None, again_seal=""))  # a second run comes later


def reproduce(folder: str | os.PathLike[str], second: str | os.PathLike[str], secret: bytes) -> Submission:
    """Store in a submission the scores of a second run of its command, which are in ``second``.

    Both were scored with this secret. Scores of ``second`` without a counterpart are an error.
    """
    first, others = read_submission(folder), read_scores(Path(second) / SCORES_FILE)
    results = {each.key: each for each in first.results}
    for other in others:
        own = results.get(other.key)
        if own is None or own.challenge != other.challenge:
            raise UserError(
                f"{first.name} has no scores for {other.problem}, seed {other.seed}, of the challenge "
                f"{other.challenge[:12]}; a second run predicts the same inputs"
            )
        check_seal(own, secret, first.name)
        check_seal(other, secret, Path(second).resolve().name)
        results[other.key] = replace(own, again=other.value, again_seal=seal(secret, AGAIN, [own.seal, other.value]))
    submission = replace(first, results=tuple(results.values()))
    write_text(Path(folder) / SCORES_FILE, scores_text(submission.results))
    return submission
