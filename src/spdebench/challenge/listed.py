"""The challenges of the maintainers: ``challenges.toml`` next to the submissions lists the SHA-256 of their secrets.

A score on hidden truth counts only if its challenge is in this list; anybody can make a challenge with a secret of
their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spdebench.challenge.reading import read_typed
from spdebench.errors import UserError
from spdebench.records.codec import decode

LIST_FILE = "challenges.toml"
MOST_LIST = 1 << 20
"""Bytes of the list."""


@dataclass(frozen=True, kw_only=True)
class ListedChallenge:
    """A challenge of the maintainers.

    Fields of the file:

        commitment  SHA-256 of the secret, 64 hexadecimal digits
        suite       the suite whose problems it has
        made        the day on which the inputs were made, YYYY-MM-DD
        closed      its secret is published, so that anybody can score with it
        entries     the submissions that were scored before it was published: no other counts as scored on hidden truth
    """

    commitment: str
    suite: str
    made: str
    closed: bool = False
    entries: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{64}", self.commitment):
            raise UserError("commitment must be the SHA-256 of a secret, 64 hexadecimal digits")
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", self.made):
            raise UserError(f"made must be a day such as 2026-11-16, got '{self.made}'")
        if self.entries and not self.closed:
            raise UserError("entries are listed when a challenge is closed")


def listed_challenges(folder: Path) -> dict[str, ListedChallenge] | None:
    """Commitment -> challenge, as listed in a folder of submissions; None if it has no list."""
    path = folder / LIST_FILE
    if not path.exists():
        return None
    return read_typed(path, _parsed, "a list of challenges", "submissions/README.md describes it", MOST_LIST)


def _parsed(values: dict[str, Any]) -> dict[str, ListedChallenge]:
    """The challenges of the list, by commitment."""
    entries = values.get("challenge")
    if set(values) != {"challenge"} or not isinstance(entries, list):
        raise UserError("expected sections [[challenge]] and nothing else")
    found = [decode(ListedChallenge, each, f"challenge[{k}]") for k, each in enumerate(entries)]
    if len({each.commitment for each in found}) < len(found):
        raise UserError("a challenge is listed twice")
    return {each.commitment: each for each in found}
