"""What a user did wrong, in one line: what was expected, what came, what to do."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_LONGEST = 1000


class UserError(Exception):
    """A mistake of the user's: the command line prints its one line and exits with code 2."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def one_line(text: str) -> str:
    """The text in one line that a terminal shows as it is, whatever a file put into it; too long a one is cut."""
    plain = "".join(c if c.isprintable() else " " for c in text[: _LONGEST + 1])
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]} ..."


class FoldingWarning(UserWarning):
    """The noise expansion reaches past the grid, so that its series folds when evaluated there."""


@contextmanager
def folding_known() -> Iterator[None]:
    """Within it folding is not warned of: it was said before, or what comes out says so itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FoldingWarning)
        yield


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """``"; did you mean 'phi42'?"``, all of them where several are as near, or the list of choices when none is."""
    known = sorted(set(choices))
    near = difflib.get_close_matches(name, known, n=max(1, len(known)), cutoff=0.5)
    if near:
        ratios = [difflib.SequenceMatcher(None, each, name).ratio() for each in near]
        *rest, last = sorted(f"'{each}'" for each, ratio in zip(near, ratios, strict=True) if ratio == max(ratios))
        return f"; did you mean {', '.join(rest) + ' or ' if rest else ''}{last}?"
    return f"; choose from {', '.join(known)}" if known else ""


def unknown(kind: str, name: str, choices: Iterable[str]) -> UserError:
    """The error for a name that is not there: ``unknown equation 'ph42'; did you mean 'phi42'?``."""
    return UserError(f"unknown {kind} '{name}'{did_you_mean(name, choices)}")
