"""Checks of a submission before it enters the repository: a card and scores that are consistent, and no other files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spdebench.challenge.card import CARD_FILE, MOST_CARD
from spdebench.challenge.listed import LIST_FILE, ListedChallenge, listed_challenges
from spdebench.challenge.score import seal_holds
from spdebench.challenge.secret import commitment
from spdebench.challenge.submission import MOST_SCORES, SCORES_FILE, Submission, read_submission
from spdebench.errors import UserError
from spdebench.suites import SUITES

SIZES = {CARD_FILE: MOST_CARD, SCORES_FILE: MOST_SCORES}
"""The files of a submission, and the most bytes of each."""
OTHER_FILES = ("README.md", LIST_FILE)
"""Files that may lie next to the submissions."""
ENOUGH_SEEDS = 3
"""Training seeds of a problem; with fewer the leaderboard shows a note."""


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
    name = folder.resolve().name
    try:
        _check_files(folder)
        submission = read_submission(folder)
        _check_problems(submission)
        if listed is not None:
            _check_challenges(submission, listed)
        if secret is not None:
            _check_seals(submission, secret)
    except UserError as error:
        return CheckedSubmission(name, str(error))
    notes = _notes(submission)
    if listed is None:
        notes.append(f"no {LIST_FILE} here says whose challenge it was")
    return CheckedSubmission(name, notes=tuple(notes))


def _check_files(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        if path.name not in SIZES:
            wanted = " and ".join(SIZES)
            raise UserError(f"{path} does not belong to a submission, whose files are {wanted}; remove it")
        if path.is_symlink() or not path.is_file():
            raise UserError(f"{path} is not a regular file")
        if (size := path.stat().st_size) > SIZES[path.name]:
            raise UserError(f"{path} has {size} bytes; at most {SIZES[path.name]} are allowed")


def _check_problems(submission: Submission) -> None:
    for scored in submission.results:
        problem = SUITES[scored.suite].choose(scored.problem)[0]
        if scored.seen is not None and not 0 <= scored.seen < problem.build().truncation:
            raise UserError(f"{scored.problem} has no task with seen={scored.seen}")


def _check_challenges(submission: Submission, listed: Mapping[str, ListedChallenge]) -> None:
    for scored in submission.results:
        if scored.hidden and scored.challenge not in listed:
            raise UserError(
                f"the challenge {scored.challenge[:12]} of {scored.problem} is not in {LIST_FILE}; scores of a "
                f"challenge of one's own are made with --own"
            )
        if scored.hidden and listed[scored.challenge].suite != scored.suite:
            raise UserError(f"the challenge {scored.challenge[:12]} is not one of the suite {scored.suite}")


def _check_seals(submission: Submission, secret: bytes) -> None:
    for scored in submission.results:
        if scored.challenge == commitment(secret) and not seal_holds(scored, secret, submission.name):
            raise UserError(f"the scores of {scored.problem}, seed {scored.seed}, were changed since they were made")


def _notes(submission: Submission) -> list[str]:
    seeds: dict[tuple[str, int | None], int] = {}
    for scored in submission.results:
        key = scored.problem, scored.seen
        seeds[key] = seeds.get(key, 0) + 1
    few = [problem for (problem, _), count in seeds.items() if count < ENOUGH_SEEDS]
    notes = [f"fewer than {ENOUGH_SEEDS} training seeds: {', '.join(dict.fromkeys(few))}"] if few else []
    if not all(scored.hidden for scored in submission.results):
        notes.append("scored with a secret of the authors' own")
    if failed := [scored.problem for scored in submission.results if scored.reproduced is False]:
        notes.append(f"a second run differed by more than 2 %: {', '.join(dict.fromkeys(failed))}")
    return notes
