"""A submission before it is scored: card, manifest of the challenge, and one Parquet file of predictions for each
problem and training seed."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from spdebench.challenge.arrays import ArraysFile, check_file, write_arrays
from spdebench.challenge.card import CARD_FILE, MOST_CARD, SubmissionCard, read_card
from spdebench.challenge.inputs import Challenge, open_challenge
from spdebench.challenge.manifest import MANIFEST_FILE, ChallengeProblem, Manifest, manifest_text, read_manifest
from spdebench.challenge.reading import check_folder
from spdebench.challenge.submission import MOST_SCORES, SCORES_FILE, Submission, check_seeds
from spdebench.data.identity import MOST_MEMBERS
from spdebench.errors import UserError
from spdebench.files import MOST_JSON, new_folder, read_text, write_text
from spdebench.metrics.fields import as_array

PREDICTIONS = "predictions"
"""The folder of the Parquet files."""
FILES = {CARD_FILE: MOST_CARD, MANIFEST_FILE: MOST_JSON, SCORES_FILE: MOST_SCORES}
"""The other files, and the most bytes of each; the scores come last."""
MOST_NUMBERS = 1 << 30
"""Numbers in one prediction."""


def write_submission(
    out: str | os.PathLike[str],
    challenge: Challenge | str | os.PathLike[str],
    card: str | os.PathLike[str],
    predictions: Mapping[tuple[str, int], Any],
    *,
    overwrite: bool = False,
) -> Path:
    """Write a submission into a new folder, whose name is that of the submission.

    ``predictions``: (problem, training seed) -> u at all frames t_0..t_T, (n T X..); for a problem with seen=K members
    of the law, (n m T X..); arrays of NumPy, tensors or lists. Each problem needs all seeds of the card. ``challenge``
    is the challenge or its folder, ``card`` the file of the card, which is copied.
    """
    opened = challenge if isinstance(challenge, Challenge) else open_challenge(challenge)
    parsed, folder, manifest = read_card(card), Path(out), opened.manifest
    Submission(folder.resolve().name, parsed)  # refuses a name that is not plain
    if not isinstance(predictions, Mapping) or not predictions:
        raise UserError(f"no predictions were given; the problems of the challenge are {', '.join(opened.labels)}")
    given = {_key(key): value for key, value in predictions.items()}
    checked = {
        (label, seed): checked_array(manifest[label], value, f"the prediction of {label} with seed {seed}")
        for (label, seed), value in given.items()
    }
    check_seeds(parsed, checked)
    with new_folder(folder, overwrite, (*FILES, "*.parquet")) as fresh:
        write_text(fresh / CARD_FILE, read_text(Path(card), MOST_CARD))
        write_text(fresh / MANIFEST_FILE, manifest_text(manifest))
        for (label, seed), array in checked.items():
            problem = manifest[label]
            path, rows = fresh / PREDICTIONS / _file_name(problem, seed), array.reshape(-1, *problem.path_shape)
            write_arrays(path, _identity(manifest, problem, seed), {"u": rows})
    return folder


def _key(key: Any) -> tuple[str, int]:
    """Problem and seed; a seed may be a whole number of NumPy."""
    try:
        label, seed = key
        if isinstance(label, str) and not isinstance(key, str) and not isinstance(seed, bool):
            return label, operator.index(seed)
    except (TypeError, ValueError):
        pass
    raise UserError(f"predictions are keyed by problem and training seed, such as ('phi41', 0), got {repr(key)[:60]}")


def checked_array(problem: ChallengeProblem, values: Any, what: str) -> np.ndarray:
    """A prediction as float32, if it has the right shape and is finite."""
    try:
        plain = as_array(values, what)
    except (TypeError, ValueError) as error:
        raise UserError(f"{what} is not an array ({error})") from None
    array = plain.cpu().numpy() if isinstance(plain, Tensor) else plain
    path, found = problem.path_shape, tuple(array.shape)
    if problem.seen is None:
        fits, wanted = found == (problem.n, *path), f"(n T X..) = {(problem.n, *path)}"
    else:
        fits = len(found) == 2 + len(path) and (found[0], *found[2:]) == (problem.n, *path)
        fits, wanted = fits and 1 <= found[1] <= MOST_MEMBERS, f"(n m T X..) with n={problem.n} and T X.. = {path}"
    if not fits:
        raise UserError(f"{what} must have the shape {wanted}, got {found}")
    if array.size > MOST_NUMBERS:
        raise UserError(f"{what} has {array.size} numbers; at most {MOST_NUMBERS} are scored: send fewer members")
    with np.errstate(over="ignore"):
        single = array.astype(np.float32, copy=False)
    if not np.isfinite(single).all():
        raise UserError(f"{what} is not finite in {int((~np.isfinite(single)).sum())} of {single.size} numbers")
    return single


def _file_name(problem: ChallengeProblem, seed: int) -> str:
    return f"{problem.label}-seed{seed}.parquet"


def _identity(manifest: Manifest, problem: ChallengeProblem, seed: int) -> dict[str, Any]:
    """The identity that a file of predictions states."""
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
        return checked_array(self.problem, array, str(self.file.path))


@dataclass(frozen=True)
class Unscored:
    """A submission with predictions: its folder, card, manifest and files of predictions, by problem and seed."""

    folder: Path
    card: SubmissionCard
    manifest: Manifest
    predictions: tuple[Prediction, ...]


def open_predictions(folder: str | os.PathLike[str], secret: bytes | None = None) -> Unscored:
    """Open a submission with predictions; with the secret its manifest is checked first.

    Metadata are compared with the manifest, and no numbers are read.
    """
    place = Path(folder)
    if not (place / PREDICTIONS).is_dir():
        raise UserError(f"{place} has no predictions; 'spdebench challenge predict' writes a folder with them")
    check_folder(place, FILES, (PREDICTIONS,))
    card, manifest = read_card(place / CARD_FILE), read_manifest(place)
    Submission(place.resolve().name, card)
    if secret is not None:
        manifest.check(secret, f"the manifest in {place}")
    found = tuple(_opened(place / PREDICTIONS, card, manifest))
    if not found:
        raise UserError(f"{place / PREDICTIONS} has no file of predictions")
    check_seeds(card, ((each.problem.label, each.seed) for each in found))
    return Unscored(place, card, manifest, found)


def _opened(folder: Path, card: SubmissionCard, manifest: Manifest) -> Iterator[Prediction]:
    """The files of predictions in a folder, after a check of names and metadata."""
    expected = {_file_name(problem, seed): (problem, seed) for problem in manifest.problems for seed in card.seeds}
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_file():
            raise UserError(f"{path} is not a regular file")
        if path.name not in expected:
            names = f"PROBLEM-seedNUMBER.parquet, with a seed of the card, {', '.join(map(str, card.seeds))}"
            raise UserError(f"{path} does not belong to a submission: files are called {names}")
        problem, seed = expected[path.name]
        file = ArraysFile(path)
        members = 1
        if problem.seen is not None:
            most = min(MOST_MEMBERS, MOST_NUMBERS // (problem.n * math.prod(problem.path_shape)))
            members = max(1, min(most, len(file) // problem.n))
        check_file(file, _identity(manifest, problem, seed), {"u": problem.path_shape}, problem.n * members)
        yield Prediction(problem, seed, file)
