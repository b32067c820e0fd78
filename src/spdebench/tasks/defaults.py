"""The paper's settings of models, training and sub-sampling for each dataset, from `defaults.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from spdebench.equations import Equation
from spdebench.tasks.setting import Setting


@dataclass(frozen=True)
class Recommendation:
    """Model and training settings for one dataset, and where they come from."""

    config: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    sources: tuple[str, ...] = ()


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads((resources.files("spdebench.tasks") / "defaults.toml").read_text(encoding="utf-8"))


def _fits(entry: dict[str, Any], setting: Setting) -> bool:
    """Whether an entry with settings of a model applies to this data."""
    here = {"inputs": setting.inputs, "dim": setting.dim}
    return _fits_equation(entry, setting.equation) and all(
        entry.get(key, value) == value for key, value in here.items()
    )


def _fits_equation(entry: dict[str, Any], equation: Equation | None) -> bool:
    """Whether the equation is in ``equations`` (if given) and has the field values of ``when``."""
    if "equations" in entry and (equation is None or equation.name not in entry["equations"]):
        return False
    return all(equation is not None and getattr(equation, k, None) == v for k, v in entry.get("when", {}).items())


def conditions(model: str, equation: str) -> list[dict[str, Any]]:
    """The field values of an equation for which a model has settings of its own: ``[{"sigma": 1.0}]``."""
    entries = [e for e in _table().get("setting", []) if e["model"] == model and "when" in e]
    found = [e["when"] for e in entries if equation in e.get("equations", [equation])]
    return [when for k, when in enumerate(found) if when not in found[:k]]


def subsampling(equation: Equation) -> dict[str, int]:
    """``every`` and ``stride`` for datasets of this equation; empty if all frames and points are used.

    An entry applies to the stored size that it names in ``when``; datasets of other sizes are used whole.
    """
    for entry in _table().get("subsampling", []):
        if _fits_equation(entry, equation):
            return {key: int(entry[key]) for key in ("every", "stride") if key in entry}
    return {}


def recommended(model: str, setting: Setting) -> Recommendation:
    """The settings of ``model`` for this data: entries of `defaults.toml` that apply; later ones win.

    The sources are those of the entries whose values are used, and of those that have none.
    """
    entries = [e for e in _table().get("setting", []) if e["model"] == model and _fits(e, setting)]
    parts: dict[str, dict[str, Any]] = {"config": {}, "training": {}}
    used: dict[tuple[str, str], int] = {}
    for place, entry in enumerate(entries):
        for part, values in parts.items():
            values |= entry.get(part, {})
            used |= {(part, key): place for key in entry.get(part, {})}
    kept = [e for place, e in enumerate(entries) if place in used.values() or not parts.keys() & e.keys()]
    return Recommendation(**parts, sources=tuple(dict.fromkeys(e["source"] for e in kept)))
