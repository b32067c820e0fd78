"""The card of a submission, a TOML file: the model, its training data, its authors, and their declaration.

Every field is checked when the card is read, and a mistake is one line that names the field.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from spdebench.challenge.reading import read_typed
from spdebench.errors import UserError
from spdebench.records.codec import build

CARD_FILE = "card.toml"
MOST_CARD = 64 << 10
"""The most bytes of a card."""
LONGEST_LINE, LONGEST_TEXT = 200, 4000
"""The most characters of a field with one line, and of one with several."""
FREE_TEXT = ("description", "training_data", "command")
"""Fields that may have several lines."""
MOST_PARAMETERS, MOST_MINUTES = 10**15, 10**9


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """The authors' declaration about leakage; a submission needs all three to be true.

    They declare:

        no_solver_used                   no numerical solver of the equation was used for the predictions
        no_test_truth_used               no solution of a test input was used to train, tune or choose the model
        no_challenge_inputs_in_training  the inputs of the challenge were used for the predictions only
    """

    no_solver_used: bool
    no_test_truth_used: bool
    no_challenge_inputs_in_training: bool

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            if not getattr(self, f.name):
                raise UserError(f"declaration.{f.name} is false; such predictions cannot be ranked with the others")


@dataclass(frozen=True, kw_only=True)
class SubmissionCard:
    """One method of one group of authors.

    Fields of the file:

        title             the name on the leaderboard
        model             the kind of model, such as FNO; a name of `spdebench list models` where it is one
        authors           their names
        contact           an e-mail address, a web address, or the word issues for the issues of this repository
        description       the method in the authors' own words
        parameters        trained numbers; a complex one counts twice
        training_data     the files or commands of the training data, with their seeds
        seeds             the training seeds, one for each submitted prediction of a problem
        code              web address of the code, at a commit or a tag; for a model of this package its path, src/..
        command           the exact command that trains the model and predicts
        hardware          the device that trained it
        training_minutes  minutes of training for one seed and problem, on that device
        declaration       the declaration about leakage
    """

    title: str
    model: str
    authors: tuple[str, ...]
    contact: str
    description: str
    parameters: int
    training_data: str
    seeds: tuple[int, ...]
    code: str
    command: str
    hardware: str
    training_minutes: float
    declaration: Declaration

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if isinstance(value, str):
                _check_text(f.name, value, several_lines=f.name in FREE_TEXT)
        if not self.authors:
            raise UserError("authors must name at least one author")
        for author in self.authors:
            _check_text("authors", author)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise UserError(f"seeds must be different whole numbers from 0 on, got {list(self.seeds)}")
        if not 0 <= self.parameters <= MOST_PARAMETERS:
            raise UserError(f"parameters must be between 0 and 10^15, got {self.parameters}")
        if not (math.isfinite(self.training_minutes) and 0 <= self.training_minutes <= MOST_MINUTES):
            raise UserError(f"training_minutes must be between 0 and 10^9, got {self.training_minutes}")
        if not (_is_web_address(self.code) or re.fullmatch(r"src(/\w+)+(\.py)?", self.code)):
            raise UserError(f"code must be a web address that starts with https://, got '{self.code}'")
        if not (_is_mail_address(self.contact) or self.contact == "issues" or _is_web_address(self.contact)):
            raise UserError(f"contact must be an e-mail address, a web address or 'issues', got '{self.contact}'")


def _check_text(name: str, text: str, *, several_lines: bool = False) -> None:
    """Refuse a text that is empty, too long or not printable."""
    longest = LONGEST_TEXT if several_lines else LONGEST_LINE
    if not text.strip():
        raise UserError(f"{name} is empty")
    if len(text) > longest:
        raise UserError(f"{name} has {len(text)} characters; at most {longest} are allowed")
    if not (text.replace("\n", "") if several_lines else text).isprintable():
        raise UserError(f"{name} must be {'text' if several_lines else 'one line'} without control characters")


def _is_mail_address(text: str) -> bool:
    return re.fullmatch(r"[\w.+-]+@[\w-]+(\.[\w-]+)+", text) is not None


def _is_web_address(text: str) -> bool:
    """Whether the text is an https address that can be written into HTML and Markdown as it is."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname) and not set(text) & set(" <>\"'`\\")


def read_card(path: str | os.PathLike[str]) -> SubmissionCard:
    """Read and check a card."""
    help = "docs/submit.md shows a card and describes its fields"
    return read_typed(
        Path(path), lambda values: build(SubmissionCard, values, ""), "the card of a submission", help, MOST_CARD
    )
