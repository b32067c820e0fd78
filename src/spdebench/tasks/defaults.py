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


def _fits(entry: dict[str, Any], equation: Equation | None) -> bool:
    """Whether an entry applies: the equation is in ``equations`` (if given) and has the field values of ``when``."""
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
        if _fits(entry, equation):
            return {key: int(entry[key]) for key in ("every", "stride") if key in entry}
    return {}


def recommended(model: str, setting: Setting) -> Recommendation:
    """The settings of ``model`` for this data: entries of `defaults.toml` that apply; later ones win."""
    config: dict[str, Any] = {}
    training: dict[str, Any] = {}
    sources: list[str] = []
    for entry in _table().get("setting", []):
        tasks = entry.get("inputs")
        if entry["model"] == model and _fits(entry, setting.equation) and tasks in (None, setting.inputs):
            if "dim" in entry and entry["dim"] != setting.dim:
                continue
            config |= entry.get("config", {})
            training |= entry.get("training", {})
            sources.append(entry["source"])
    return Recommendation(config, training, tuple(dict.fromkeys(sources)))
