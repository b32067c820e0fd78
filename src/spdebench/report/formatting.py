"""Values as text, names of pages, and the Markdown of cards.

The data and configurations of a record may be any JSON values, so these functions accept anything.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from spdebench.records import summary

MISSING = "–"
_NARROW = "\u202f"  # the narrow space that groups digits; site.js removes it for sorting
_HEX = re.compile(r"[0-9a-f]{6,64}")


# --- reading arbitrary values -------------------------------------------------------------------------------------
def mapping(value: Any) -> dict[str, Any]:
    """The value if it is a dictionary, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """The value as a list if it is a list or tuple, else an empty one."""
    return list(value) if isinstance(value, list | tuple) else []


def real(value: Any) -> float | None:
    """A number, also one that is written as "inf" or "nan"; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return float(value) if value in ("inf", "-inf", "nan") else None


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, keys joined by dots."""
    out: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            out |= flat(value, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = value
    return out


# --- names of pages -----------------------------------------------------------------------------------------------
def fingerprint(value: Any) -> str:
    """A hash of any value with ten hexadecimal digits; for plain finite values the same as `spec.digest`."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def page_name(digest: Any) -> str:
    """A name for a file: the digest itself if it is hexadecimal, else its fingerprint."""
    return digest if isinstance(digest, str) and _HEX.fullmatch(digest) else fingerprint(digest)


def slug(text: str) -> str:
    """A name as part of a file name: lower-case letters, digits and dashes, and a fingerprint if that lost anything."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40]
    return plain if plain == text else f"{plain}-{fingerprint(text)}".lstrip("-")


# --- numbers ------------------------------------------------------------------------------------------------------
def number(value: float | None) -> str:
    """A number as in tables; the digits of whole numbers are grouped."""
    if value is None:
        return MISSING
    return f"{value:,}".replace(",", _NARROW) if isinstance(value, int) else summary.number(value)


def seconds(value: float | None) -> str:
    """A duration as text: 12 s, 3 min 05 s, 2 h 10 min."""
    if value is None or not math.isfinite(value) or value < 60:
        return number(value) + " s" * (value is not None)
    minutes = int(value) // 60
    return f"{minutes} min {int(value) % 60:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


# --- words --------------------------------------------------------------------------------------------------------
def text(value: Any) -> str:
    """Any value in one line, without control characters."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(text(v) for v in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={text(v)}" for key, v in value.items())
    return "".join(c if c.isprintable() else " " for c in str(value))


def title(words: str) -> str:
    """Powers and indices of a name as such: Phi^4_1 -> Φ⁴₁."""
    raised = re.sub(r"\^(\d)", lambda m: "⁰¹²³⁴⁵⁶⁷⁸⁹"[int(m[1])], words.replace("Phi", "Φ"))
    return re.sub(r"_(\d)", lambda m: "₀₁₂₃₄₅₆₇₈₉"[int(m[1])], raised)


def several(values: Iterable[Any]) -> str:
    """The different values among these, in their order."""
    return ", ".join(dict.fromkeys(text(v) for v in values if v is not None))


# --- Markdown -----------------------------------------------------------------------------------------------------
Block = tuple[str, Any]
"""A kind (heading, paragraph, list, table) and its content."""


def markdown(source: str) -> list[Block]:
    """Headings, paragraphs, lists and tables of a card, as blocks for a template; marks within a line are dropped."""
    blocks: list[Block] = []
    for part in re.split(r"\n\s*\n", source.strip()):
        lines = [line.strip() for line in part.splitlines() if line.strip()]
        if not lines:
            continue
        while lines and lines[0].startswith("#"):
            blocks.append(("heading", _inline(lines.pop(0).lstrip("#"))))
        if not lines:
            continue
        if all(line.startswith("|") for line in lines):
            rows = [[_inline(cell) for cell in line.strip("|").split("|")] for line in lines]
            rows = [row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]
            blocks.append(("table", {"head": rows[0], "rows": rows[1:]}))
        elif all(line.startswith("- ") for line in lines):
            blocks.append(("list", [_inline(line[2:]) for line in lines]))
        else:
            blocks.append(("paragraph", _inline(" ".join(lines))))
    return blocks


def _inline(line: str) -> str:
    return text(line.replace("`", "").strip())
