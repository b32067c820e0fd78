"""A submission is a folder: its name, ``card.toml`` (`card`), and ``scores.json``, which `Scored` describes."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spdebench.challenge.card import CARD_FILE, SubmissionCard, read_card
from spdebench.challenge.manifest import LEAST_INPUTS, MOST_INPUTS, problem_label
from spdebench.challenge.reading import read_typed, without_version
from spdebench.errors import UserError
from spdebench.records import MetricValue
from spdebench.records.codec import decode, encode

SCORES_FILE = "scores.json"
MOST_SCORES = 4 << 20
"""The most bytes of a file of scores."""
VERSION = 1
FOLDER = Path("submissions")
"""The folder in which submissions are collected."""
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
ENOUGH_SEEDS = 3
"""A mean over fewer training seeds is shown with a note."""
TOLERANCE = 0.02
"""Relative difference up to which a second run reproduces a score."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """Scores of the predictions for one problem by the model of one training seed.

    Fields of the file:

        problem    name of the problem in its suite
        seen       None: all of the noise was given, u is predicted path by path; K: only the noise modes that
                   truncation K keeps were given, and members of the law of u were predicted
        members    number of members per input, if a law was predicted
        n          number of inputs
        hidden     the truth was solved from the secret of the challenge; False: the authors had that secret themselves
        challenge  SHA-256 of the secret: which challenge this was
        version    version of spdebench that scored it
        seal       HMAC of the scores and the submission's name, with which the owner of the secret can check them
        again      value of the first metric when the maintainers ran the authors' command; None: they have not
        again_seal HMAC of ``again`` and ``seal``
    """

    suite: str
    problem: str
    seed: int
    n: int
    scores: Mapping[str, MetricValue]
    seen: int | None = None
    members: int | None = None
    hidden: bool = False
    challenge: str = ""
    version: str = ""
    seal: str = ""
    again: float | None = None
    again_seal: str = ""

    def __post_init__(self) -> None:
        if not self.scores:
            raise UserError(f"the scores of {self.problem} are missing")
        if self.metric not in self.scores:
            raise UserError(f"the score {self.metric} of {self.problem} is missing")
        if not all(re.fullmatch(r"\w{1,40}", name) for name in self.scores):
            raise UserError(f"the scores of {self.problem} have a name that is not one of a metric")
        if not math.isfinite(self.value) or (self.seen is None and self.value < 0):
            raise UserError(f"the score {self.metric} of {self.problem} must be a finite error, got {self.value}")
        if wrong := [name for name, each in self.scores.items() if not _in_order(each)]:
            raise UserError(f"the interval of {wrong[0]} of {self.problem} ends before it begins")
        if not LEAST_INPUTS <= self.n <= MOST_INPUTS or self.seed < 0:
            raise UserError(
                f"n must be between {LEAST_INPUTS} and {MOST_INPUTS}, and seed at least 0, got {self.n} and {self.seed}"
            )
        if (self.seen is None) != (self.members is None) or (self.members is not None and self.members < 1):
            raise UserError(f"members must be given with seen, and be at least 1, got {self.members}")
        if not re.fullmatch(r"[0-9a-f]{64}", self.challenge):
            raise UserError("challenge must be the SHA-256 of the secret, 64 hexadecimal digits")
        if not re.fullmatch(r"[\w.+-]{0,40}", self.version):
            raise UserError("version must be one of spdebench")
        if self.again is not None and not (math.isfinite(self.again) and self.again >= 0):
            raise UserError(f"again must be a finite number from 0 on, got {self.again}")

    @property
    def label(self) -> str:
        """The problem's name, and what is seen of its noise if that is not all."""
        return problem_label(self.problem, self.seen)

    @property
    def metric(self) -> str:
        """The metric by which the problem is ranked."""
        return "rel_l2" if self.seen is None else "energy_score"

    @property
    def value(self) -> float:
        """The value of that metric."""
        return self.scores[self.metric].value

    @property
    def reproduced(self) -> bool | None:
        """Whether a second run by the maintainers came within 2 %; None: there was none."""
        return None if self.again is None else abs(self.again - self.value) <= TOLERANCE * abs(self.value)

    @property
    def key(self) -> tuple[str, str, int, int]:
        """Suite, problem, what is seen (-1: all) and training seed: a submission has one score for each."""
        return self.suite, self.problem, -1 if self.seen is None else self.seen, self.seed


def _in_order(value: MetricValue) -> bool:
    return value.low is None or value.high is None or not value.low > value.high  # NaN is no number


@dataclass(frozen=True)
class Submission:
    """One folder of submissions: its name, its card and its scores, sorted by problem and seed."""

    name: str
    card: SubmissionCard
    results: tuple[Scored, ...] = field(default=())

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or len(self.name) > 40:
            raise UserError(f"a submission's name has up to 40 small letters, digits and single -, got '{self.name}'")
        keys = [each.key for each in self.results]
        if len(set(keys)) < len(keys):
            raise UserError("a problem is scored twice for one training seed")
        check_seeds(self.card, ((each.label, each.seed) for each in self.results))
        object.__setattr__(self, "results", tuple(sorted(self.results, key=lambda each: each.key)))


def check_seeds(card: SubmissionCard, found: Iterable[tuple[str, int]]) -> None:
    """Refuse pairs (problem, training seed) unless each problem has all seeds of the card: none may be left out."""
    seeds: dict[str, set[int]] = {}
    for label, seed in found:
        seeds.setdefault(label, set()).add(seed)
    for label, known in seeds.items():
        if known != set(card.seeds):
            raise UserError(f"{label} has the training seeds {sorted(known)}, the card says {sorted(card.seeds)}")


# --- files ----------------------------------------------------------------------------------------------------------
def scores_text(results: tuple[Scored, ...]) -> str:
    """The content of ``scores.json``."""
    written = {"version": VERSION, "results": [encode(each) for each in sorted(results, key=lambda each: each.key)]}
    return json.dumps(written, indent=1, sort_keys=True, allow_nan=False) + "\n"


def read_scores(path: Path) -> tuple[Scored, ...]:
    """The scores in a file; raises a one-line error that names the file and the field if they are not valid."""
    return read_typed(path, _parsed, "a file of scores", "'spdebench challenge score' writes it", MOST_SCORES)


def _parsed(values: dict[str, Any]) -> tuple[Scored, ...]:
    """The scores in the object of a file of results."""
    content = without_version(values, VERSION)
    results = content.get("results")
    if set(content) != {"results"} or not isinstance(results, list) or not results:
        raise UserError("expected version and results, a list that is not empty, and nothing else")
    return tuple(decode(Scored, each, f"results[{k}]") for k, each in enumerate(results))


def read_submission(folder: str | os.PathLike[str]) -> Submission:
    """Read a submission with its scores."""
    place = Path(folder)
    if not place.is_dir():
        raise UserError(f"no such submission: {place} (a submission is a folder with {CARD_FILE} and {SCORES_FILE})")
    card, results = read_card(place / CARD_FILE), read_scores(place / SCORES_FILE)
    try:
        return Submission(place.resolve().name, card, results)
    except UserError as error:
        raise UserError(f"{place}: {error}") from None


def submissions(folder: str | os.PathLike[str] = FOLDER) -> tuple[Submission, ...]:
    """All submissions of a folder, sorted by name; a folder that does not exist has none."""
    place = Path(folder)
    if not place.exists():
        return ()
    if not place.is_dir():
        raise UserError(f"{place} is a file, not a folder of submissions")
    found = sorted(each for each in place.iterdir() if each.is_dir() and not each.is_symlink())
    return tuple(read_submission(each) for each in found)
