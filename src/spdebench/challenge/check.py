"""Checks of a submission before it enters the repository: a card and scores that are consistent, and no other files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spdebench.challenge.card import CARD_FILE, MOST_CARD
from spdebench.challenge.listed import LIST_FILE, ListedChallenge, listed_challenges
from spdebench.challenge.reading import check_folder
from spdebench.challenge.score import check_seal
from spdebench.challenge.secret import commitment
from spdebench.challenge.submission import ENOUGH_SEEDS, MOST_SCORES, SCORES_FILE, Submission, read_submission
from spdebench.errors import UserError, unknown
from spdebench.suites import SUITES

SIZES = {CARD_FILE: MOST_CARD, SCORES_FILE: MOST_SCORES}
"""The files of a submission, and the most bytes of each."""
OTHER_FILES = ("README.md", LIST_FILE)
"""Files that may be next to the submissions."""


@dataclass(frozen=True)
class CheckedSubmission:
    """The name of a submission, its error (empty if there is none), and the notes that the leaderboard will show."""

    name: str
    error: str = ""
    notes: tuple[str, ...] = ()


def check_submissions(folder: str | os.PathLike[str], secret: bytes | None = None) -> list[CheckedSubmission]:
    """Check a submission, or all submissions of a folder; with the secret of their challenge also their seals."""
    place = Path(folder)
    if not place.is_dir():
        raise UserError(f"no such folder: {place}")
    if (place / CARD_FILE).exists() or (place / SCORES_FILE).exists():
        return [_checked(place, secret, listed_challenges(place.resolve().parent))]
    found = sorted(place.iterdir())
    strange = [each.name for each in found if each.name not in OTHER_FILES and (not each.is_dir() or each.is_symlink())]
    folders = [each for each in found if each.is_dir() and not each.is_symlink()]
    if not folders and not strange:
        raise UserError(f"{place} holds no submission")
    listed = listed_challenges(place)
    return [*(CheckedSubmission(name, "is not a folder of a submission; remove it") for name in strange)] + [
        _checked(each, secret, listed) for each in folders
    ]


def _checked(folder: Path, secret: bytes | None, listed: Mapping[str, ListedChallenge] | None) -> CheckedSubmission:
    """Check one submission."""
    name = folder.resolve().name
    try:
        check_folder(folder, SIZES)
        submission = read_submission(folder)
        _check_problems(submission)
        if listed is not None:
            _check_challenges(submission, listed)
        if secret is not None:
            _check_seals(submission, secret)
    except UserError as error:
        return CheckedSubmission(name, str(error))
    notes = _notes(submission, secret)
    if listed is None:
        notes.append(f"no {LIST_FILE} here says whose challenge it was")
    return CheckedSubmission(name, notes=tuple(notes))


def _check_problems(submission: Submission) -> None:
    """Refuse scores of unknown problems, or without a seal."""
    for scored in submission.results:
        problems = {each.name: each for each in SUITES[scored.suite].problems}
        if scored.problem not in problems:
            raise unknown(f"problem of the suite {scored.suite}", scored.problem, problems)
        if scored.seen is not None and not 0 <= scored.seen < problems[scored.problem].build().truncation:
            raise UserError(f"{scored.problem} has no task with seen={scored.seen}")
        seals = [scored.seal] if scored.again is None else [scored.seal, scored.again_seal]
        if not all(re.fullmatch(r"[0-9a-f]{64}", each) for each in seals):
            raise UserError(f"the scores of {scored.label}, seed {scored.seed}, have no seal")


def _check_challenges(submission: Submission, listed: Mapping[str, ListedChallenge]) -> None:
    """Refuse scores on hidden truth of a challenge that is not listed, of another suite, or closed."""
    for scored in submission.results:
        if not scored.hidden:
            continue
        short, own = scored.challenge[:12], "scores with a secret that its authors know are made with --own"
        challenge = listed.get(scored.challenge)
        if challenge is None:
            raise UserError(f"the challenge {short} of {scored.problem} is not in {LIST_FILE}; {own}")
        if challenge.suite != scored.suite:
            raise UserError(f"the challenge {short} is not one of the suite {scored.suite}")
        if challenge.closed and submission.name not in challenge.entries:
            raise UserError(f"the challenge {short} of {scored.problem} is closed, its secret is published; {own}")


def _check_seals(submission: Submission, secret: bytes) -> None:
    """Raise an error if the seal of a score of this challenge was not made with its secret."""
    for scored in submission.results:
        if scored.challenge == commitment(secret):
            check_seal(scored, secret, submission.name)


def _notes(submission: Submission, secret: bytes | None) -> list[str]:
    """Notes on few seeds, known secrets, second runs that differ, and seals that were not checked."""
    notes = [] if len(submission.card.seeds) >= ENOUGH_SEEDS else [f"fewer than {ENOUGH_SEEDS} training seeds"]
    if not all(scored.hidden for scored in submission.results):
        notes.append("scored with a secret of the authors' own")
    if failed := [scored.problem for scored in submission.results if scored.reproduced is False]:
        notes.append(f"a second run differed by more than 2 %: {', '.join(dict.fromkeys(failed))}")
    if secret is None:
        notes.append("seals were not checked, which needs --seed-file")
    elif other := {each.label for each in submission.results if each.challenge != commitment(secret)}:
        notes.append(f"seals of another challenge were not checked: {', '.join(sorted(other))}")
    return notes
