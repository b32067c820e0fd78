"""The challenges of the maintainers: ``challenges.toml`` next to the submissions lists the SHA-256 of their secrets.

A score on hidden truth counts only if its challenge is in this list; anybody can make a challenge with a secret of
their own.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from spdebench.errors import UserError
from spdebench.files import read_text
from spdebench.records.codec import build

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
        closed      its secret is published: later entries cannot be hidden any more
    """

    commitment: str
    suite: str
    made: str
    closed: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{64}", self.commitment):
            raise UserError("commitment must be the SHA-256 of a secret, 64 hexadecimal digits")
        if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", self.made):
            raise UserError(f"made must be a day such as 2026-11-16, got '{self.made}'")


def listed_challenges(folder: Path) -> dict[str, ListedChallenge] | None:
    """Commitment -> challenge, as listed in a folder of submissions; None if it has no list."""
    path = folder / LIST_FILE
    try:
        values = tomllib.loads(read_text(path, MOST_LIST))
        entries = values.get("challenge")
        if set(values) != {"challenge"} or not isinstance(entries, list):
            raise UserError("expected sections [[challenge]] and nothing else")
        found = [build(ListedChallenge, each, f"challenge[{k}].") for k, each in enumerate(entries)]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror or error})") from None
    except (ValueError, RecursionError, UserError) as error:
        raise UserError(f"{path} is not a list of challenges ({error})") from None
    return {each.commitment: each for each in found}
