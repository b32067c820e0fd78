"""Our numbers against the published ones: at or below their mean + 2 s.d., above it, or far below; and why.

Explanations are data (`explanations.toml`): the first whose keys all agree with a cell applies to it. Inference times
are not compared, because they were measured on other devices.
"""

from __future__ import annotations

import dataclasses
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from spdebench.paper.base import Cell
from spdebench.paper.filled import Entry, Filled

DEVIATIONS = 2.0  # our number may exceed the published mean by this many published standard deviations
FAR = 0.25  # a number below this fraction of the published mean needs an explanation as well
KEYS = ("table", "group", "row", "column", "model", "metric")
"""Fields of a cell that an explanation may name."""
VERDICTS = ("Unexplained", "Explained in part", "Explained")
"""The possible verdicts on a number that lies above or far below the published one; the least explained comes first."""


@dataclass(frozen=True)
class Explanation:
    """A text, and the fields of the cells that it applies to, each with the values that it may have.

    The first line of the text is the answer; a line that begins with ``- `` is one fact of the evidence.
    ``below``: it explains numbers far below the published ones, not above. ``partly``: it does not account for all of
    the difference.
    """

    about: Mapping[str, tuple[str, ...]]
    text: str
    partly: bool = False
    below: bool = False

    def applies_to(self, cell: Cell) -> bool:
        return all(getattr(cell, key) in values for key, values in self.about.items())


@dataclass(frozen=True)
class PublishedComparison:
    """A published number and ours; there is at least one run."""

    entry: Entry
    explanation: Explanation | None

    @property
    def limit(self) -> float:
        """The published mean + 2 s.d.; the mean alone if no s.d. is printed."""
        cell = self.entry.cell
        return (cell.published or 0.0) + DEVIATIONS * (cell.published_std or 0.0)

    @property
    def compared(self) -> bool:
        return self.entry.cell.metric != "inference_ms"

    @property
    def above(self) -> bool:
        """Whether our number is above the limit or not finite."""
        mean = self.entry.mean
        return self.compared and (mean is None or not math.isfinite(mean) or mean > self.limit)

    @property
    def far_below(self) -> bool:
        """Whether our number is so far below the published one that it needs an explanation."""
        mean, cell = self.entry.mean, self.entry.cell
        return self.compared and mean is not None and mean < FAR * (cell.published or 0.0)

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`, for a number that is above or far below the published one."""
        return VERDICTS[0 if self.explanation is None else 1 if self.explanation.partly else 2]


def parse(toml: str) -> tuple[Explanation, ...]:
    """The explanations of a TOML text; a key that no cell has is a ValueError."""
    found = []
    for number, raw in enumerate(tomllib.loads(toml).get("explanation", []), start=1):
        text = one_line_each(str(raw.pop("text", "")))
        flags = {key: raw.pop(key, False) for key in ("partly", "below")}
        about = {key: tuple(value) if isinstance(value, list) else (value,) for key, value in raw.items()}
        if wrong := sorted(about.keys() - set(KEYS)):
            raise ValueError(f"explanation {number} is about '{wrong[0]}'; it can be about {', '.join(KEYS)}")
        if not about or not text:
            raise ValueError(f"explanation {number} needs a text and at least one of {', '.join(KEYS)}")
        for key, value in flags.items():
            if not isinstance(value, bool):
                raise ValueError(f"explanation {number}: {key} is true or false, not {value!r}")
        found.append(Explanation(about, text, **flags))
    return tuple(found)


def one_line_each(text: str) -> str:
    """The answer in the first line, and each fact (``- ``) in a line of its own, however the text is wrapped."""
    return "\n".join(" ".join(part.split()) for part in re.split(r"\n(?=- )", text.strip()))


@cache
def explanations() -> tuple[Explanation, ...]:
    """The explanations in `explanations.toml`."""
    return parse((resources.files("spdebench.paper") / "explanations.toml").read_text(encoding="utf-8"))


def comparisons(filled: Filled, known: Iterable[Explanation] | None = None) -> list[PublishedComparison]:
    """A comparison for each published number of a table that has a run, with the first explanation that applies."""
    every = explanations() if known is None else tuple(known)
    out = [PublishedComparison(e, None) for e in filled.entries if e.cell.published_keys and e.values]
    return [dataclasses.replace(s, explanation=_reason(s, every)) if s.above or s.far_below else s for s in out]


def _reason(found: PublishedComparison, every: Iterable[Explanation]) -> Explanation | None:
    return next((x for x in every if x.below == found.far_below and x.applies_to(found.entry.cell)), None)
