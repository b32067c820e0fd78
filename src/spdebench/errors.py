"""Errors and warnings for users, one line each: what was expected, what was given, what to do."""

from __future__ import annotations

import difflib
import inspect
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_LONGEST = 1000


class UserError(Exception):
    """A mistake by the user: the command line prints its message in one line and exits with code 2.

    ``unknown_name`` is the word that was not understood, if that is the mistake.
    """

    unknown_name: str = ""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def one_line(text: str) -> str:
    """The text as one printable line: control characters become blanks, and a long text is cut."""
    plain = "".join(c if c.isprintable() else " " for c in text[: _LONGEST + 1])
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]} ..."


class Damaged(UserError):
    """A file of ours is empty, cut off or changed: whoever made it can make it again."""


class UnknownName(UserError):
    """No equation, model, metric or scheme of this name is declared."""

    def __init__(self, kind: str, name: str, choices: Iterable[str]) -> None:
        self.kind, self.name, self.choices = kind, name, tuple(choices)
        near = did_you_mean(name, self.choices)
        super().__init__(f"unknown {kind} '{name}'{near} (a file of yours that declares it: --with FILE)")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, self.name, self.choices)

    @property
    def needed(self) -> str:
        """The message, after the name of a file that cannot be used without this name."""
        missing = f"needs the {self.kind} '{self.name}', which is not declared"
        return f"{missing}; load the file that declares it: --with FILE"


class RenamedWarning(DeprecationWarning):
    """An option was given under its old name, which still works."""


def warn_renamed(old: str, new: str) -> None:
    """Warn the first caller outside this package, where Python shows warnings of deprecated names."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "spdebench":
        level, frame = level + 1, frame.f_back
    warnings.warn(f"'{old}' is now called '{new}'; the old name still works", RenamedWarning, stacklevel=level)


EXTRAS = {
    "hub": "huggingface_hub>=0.30",
    "ray": "ray>=2.40,<3",
    "tensorboard": "tensorboard>=2.15",
    "fast-sig": "pysiglib>=4,<5",
}
"""Optional dependencies, as pyproject.toml has them; spdebench itself is on no package index."""


def needs_extra(what: str, extra: str) -> UserError:
    """The error for an optional package that is not installed."""
    package = EXTRAS[extra].partition(">")[0]
    return UserError(f"{what} needs the package {package}, which is not installed: pip install '{EXTRAS[extra]}'")


class NoiseWarning(UserWarning):
    """The noise of an equation has an unusual meaning, which `Equation.caution` explains."""


class AliasingWarning(UserWarning):
    """The noise has more modes than the grid resolves, so high modes alias onto low ones."""


class DamagedWarning(UserWarning):
    """A damaged file was set aside and is made again."""


@contextmanager
def without_aliasing_warning() -> Iterator[None]:
    """No `AliasingWarning` is given inside this context: the user has been told already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AliasingWarning)
        yield


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """``"; did you mean 'phi42'?"`` with the nearest of the choices, or the list of choices if none is near."""
    known = sorted(set(choices))
    longer = [f"'{each}'" for each in known if len(name) > 3 and each.startswith(name)]
    if 1 < len(longer) < 9:
        return f"; did you mean {', '.join(longer[:-1])} or {longer[-1]}?"
    # A ratio is at most 2 a / (a + b) for words of a < b letters. A damaged file may name a word of a million letters,
    # which difflib would index although no name is near.
    comparable = [each for each in known if len(name) <= 3 * len(each)]
    near = difflib.get_close_matches(name, comparable, n=max(1, len(known)), cutoff=0.5) if comparable else []
    if near:
        ratios = [difflib.SequenceMatcher(None, each, name).ratio() for each in near]
        *first, last = sorted(f"'{each}'" for each, ratio in zip(near, ratios, strict=True) if ratio == max(ratios))
        return f"; did you mean {', '.join(first) + ' or ' if first else ''}{last}?"
    return f"; choose from {', '.join(known)}" if known else ""


def unknown(kind: str, name: str, choices: Iterable[str]) -> UserError:
    """The error for a name that is not there: ``unknown equation 'ph42'; did you mean 'phi42'?``."""
    error = UserError(f"unknown {kind} '{name}'{did_you_mean(name, choices)}")
    error.unknown_name = name
    return error


def first_line(error: BaseException) -> str:
    """The first line of an error's message, shortened."""
    return (str(error).splitlines() or [type(error).__name__])[0][:160]
