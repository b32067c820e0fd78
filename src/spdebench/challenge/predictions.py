"""A submission before it is scored: card, manifest of the challenge, and one Parquet file of predictions for each
problem and training seed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spdebench.challenge.arrays import ArraysFile, check_file, write_arrays
from spdebench.challenge.card import CARD_FILE, SubmissionCard, card_text, parse_card
from spdebench.challenge.inputs import Challenge
from spdebench.challenge.manifest import MANIFEST_FILE, ChallengeProblem, Manifest, manifest_text, read_manifest
from spdebench.challenge.submission import Submission
from spdebench.data.identity import MOST_MEMBERS
from spdebench.errors import UserError
from spdebench.files import new_folder, write_text

PREDICTIONS = "predictions"
"""The folder of the Parquet files."""


def write_submission(
    out: str | os.PathLike[str],
    challenge: Challenge,
    card: str | os.PathLike[str],
    predictions: Mapping[tuple[str, int], Any],
    *,
    overwrite: bool = False,
) -> Path:
    """Write a submission into a new folder, whose name is that of the submission.

    ``predictions``: (problem, training seed) -> u at all frames t_0..t_T, (n T X..); for a problem with seen=K members
    of the law, (n m T X..). ``card`` is the file of the card, which is copied.
    """
    text = card_text(Path(card))
    parsed, folder = parse_card(text, str(card)), Path(out)
    Submission(folder.resolve().name, parsed)  # refuses a name that is not plain
    if not predictions:
        raise UserError(f"no predictions were given; the problems of the challenge are {', '.join(challenge.labels)}")
    checked = {
        key: checked_array(challenge.manifest[key[0]], value, f"the prediction of {key[0]}, seed {key[1]},")
        for key, value in predictions.items()
    }
    for label, seed in checked:
        _check_seed(parsed, label, seed)
    with new_folder(folder, overwrite) as fresh:
        write_text(fresh / CARD_FILE, text)
        write_text(fresh / MANIFEST_FILE, manifest_text(challenge.manifest))
        for (label, seed), array in checked.items():
            problem = challenge.manifest[label]
            path, rows = fresh / PREDICTIONS / _file_name(problem, seed), array.reshape(-1, *problem.path_shape)
            write_arrays(path, _identity(challenge.manifest, problem, seed), {"u": rows})
    return folder


def checked_array(problem: ChallengeProblem, values: Any, what: str) -> np.ndarray:
    """A prediction as float32, if it has the right shape and is finite."""
    array = np.asarray(values)
    path, found = problem.path_shape, tuple(array.shape)
    if problem.seen is None:
        fits, wanted = found == (problem.n, *path), f"(n T X..) = {(problem.n, *path)}"
    else:
        fits = len(found) == 2 + len(path) and (found[0], *found[2:]) == (problem.n, *path)
        fits, wanted = fits and 1 <= found[1] <= MOST_MEMBERS, f"(n m T X..) with n={problem.n} and T X.. = {path}"
    if not fits:
        raise UserError(f"{what} must have the shape {wanted}, got {found}")
    if array.dtype.kind not in "fiu":
        raise UserError(f"{what} must consist of real numbers, got {array.dtype}")
    with np.errstate(over="ignore"):
        single = array.astype(np.float32)
    if not np.isfinite(single).all():
        raise UserError(f"{what} is not finite in {int((~np.isfinite(single)).sum())} of {single.size} numbers")
    return single


def _check_seed(card: SubmissionCard, label: str, seed: int) -> None:
    if seed not in card.seeds:
        raise UserError(f"{label} was predicted with seed {seed}; the seeds of the card are {list(card.seeds)}")


def _file_name(problem: ChallengeProblem, seed: int) -> str:
    return f"{problem.label}-seed{seed}.parquet"


def _identity(manifest: Manifest, problem: ChallengeProblem, seed: int) -> dict[str, Any]:
    return {
        "challenge": manifest.commitment,
        "suite": manifest.suite,
        "problem": problem.label,
        "inputs": problem.sha256,
        "seed": seed,
    }


@dataclass(frozen=True)
class Prediction:
    """A file of predictions whose metadata fit the challenge; `read` checks its numbers."""

    problem: ChallengeProblem
    seed: int
    file: ArraysFile

    def read(self) -> np.ndarray:
        rows = self.file.read("u")
        array = rows if self.problem.seen is None else rows.reshape(self.problem.n, -1, *rows.shape[1:])
        return checked_array(self.problem, array, f"{self.file.path}:")


@dataclass(frozen=True)
class Unscored:
    """A submission with predictions: its folder, card, manifest and files of predictions, by problem and seed."""

    folder: Path
    card: SubmissionCard
    manifest: Manifest
    predictions: tuple[Prediction, ...]


def open_predictions(folder: str | os.PathLike[str], manifest: Manifest | None = None) -> Unscored:
    """Open a submission with predictions; metadata are compared with its manifest, and no numbers are read."""
    place = Path(folder)
    if not (place / PREDICTIONS).is_dir():
        raise UserError(f"{place} has no predictions; 'spdebench challenge predict' writes a folder with them")
    text = card_text(place / CARD_FILE)
    card, known = parse_card(text, str(place / CARD_FILE)), manifest or read_manifest(place)
    Submission(place.resolve().name, card)
    found = tuple(_opened(place / PREDICTIONS, card, known))
    if not found:
        raise UserError(f"{place / PREDICTIONS} has no file of predictions")
    return Unscored(place, card, known, found)


def _opened(folder: Path, card: SubmissionCard, manifest: Manifest) -> Iterator[Prediction]:
    expected = {_file_name(problem, seed): (problem, seed) for problem in manifest.problems for seed in card.seeds}
    for path in sorted(folder.iterdir()):
        if path.name not in expected or not path.is_file() or path.is_symlink():
            raise UserError(f"{path} does not belong to a submission: files are called PROBLEM-seedNUMBER.parquet")
        problem, seed = expected[path.name]
        file = ArraysFile(path)
        members = 1
        if problem.seen is not None:
            members = min(MOST_MEMBERS, max(1, len(file) // problem.n))
        check_file(file, _identity(manifest, problem, seed), {"u": problem.path_shape}, problem.n * members)
        yield Prediction(problem, seed, file)
