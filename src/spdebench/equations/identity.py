"""The attributes of an equation's class that change its solutions; together with the fields they enter every hash.

A spec states the class variables of its equation that differ from those of `Equation`, and its scheme. The seven
equations of the paper are older than this rule. Their class variables are pinned here and add nothing to a spec, so
that their hashes stay the same; if a class of that name differs from what is pinned (another scheme or domain), the
difference enters its spec.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from spdebench import spec
from spdebench.equations.base import EQUATIONS, Equation
from spdebench.equations.scheme import SCHEMES, Scheme
from spdebench.errors import UserError

_SOLVED_BY = {
    "kdv": ("normal_form", "normal_form"),
    "kpz": ("semi_implicit", "etdrk4"),
    "nse": ("crank_nicolson", "etdrk4"),
    "phi41": ("semi_implicit", "etdrk4"),
    "phi42": ("wick", "etdrk4"),
    "phi43": ("semi_implicit", "etdrk4"),
    "wave": ("leapfrog", "trigonometric"),
}
PINNED: dict[str, dict[str, Any]] = {
    "kdv": {"differences": False},
    "nse": {"dim": 2, "coarsens": True, "differences": False, "strided": lambda e: e.storage == "stride"},
    "phi42": {"dim": 2},
    "phi43": {"dim": 3, "lower": -1.0, "upper": 1.0},
    "wave": {"order": 2, "multiplicative": True},
}
"""Equation -> the class variables and properties in which it differs from `Equation`."""
PINNED_SCHEMES: dict[str, dict[str, Any]] = {"normal_form": {"iterations": 2}}

_WITHOUT_EFFECT = {"name", "formula", "title", "remarks", "refinement", "boundaries", "bases", "noises", "schemes"}
_CAPABILITIES = {"name", *Scheme.__annotations__}
_MISSING = object()


def class_record(equation: Equation) -> dict[str, Any]:
    """What differs from the pinned class: its class variables, the scheme in use, and the scheme's class variables."""
    cls, name = type(equation), equation.name
    pinned = {k: v(equation) if callable(v) else v for k, v in PINNED.get(name, {}).items()}
    left_out = _WITHOUT_EFFECT | {f.name for f in dataclasses.fields(equation)}
    now, base = _plain_attributes(cls, left_out), _plain_attributes(Equation, left_out)
    for key in ("differences", "strided", "multiplicative"):
        now[key], base[key] = getattr(equation, key), getattr(Equation, key).fget(equation)
    out = _difference(now, base | pinned)
    edition = ("paper", "converged").index(equation.edition)
    if _SOLVED_BY.get(name, ("", ""))[edition] != equation.scheme:
        out["schemes"] = {equation.edition: equation.scheme}
    scheme = _plain_attributes(SCHEMES[equation.scheme], _CAPABILITIES)
    if differing := _difference(scheme, PINNED_SCHEMES.get(equation.scheme, {})):
        out["scheme"] = differing
    if name not in EQUATIONS or EQUATIONS[name].__qualname__ != cls.__qualname__:
        out["subclass"] = cls.__qualname__
    return out


def _plain_attributes(cls: type, left_out: set[str]) -> dict[str, Any]:
    """The public class variables of ``cls`` that JSON can represent, by name."""
    values = {key: getattr(cls, key) for key in dir(cls) if not key.startswith("_") and key not in left_out}
    return {key: value for key, value in values.items() if _plain(value)}


def _plain(value: Any) -> bool:
    """Whether JSON can represent the value."""
    if isinstance(value, dict):
        return all(isinstance(k, str) and _plain(v) for k, v in value.items())
    return all(map(_plain, value)) if isinstance(value, (list, tuple)) else isinstance(value, (bool, int, float, str))


def _difference(now: dict[str, Any], pinned: dict[str, Any]) -> dict[str, Any]:
    """The entries of ``now`` that differ from ``pinned`` (None for a missing one), as they read back from JSON."""
    keys = sorted({*now, *pinned})
    differing = {key: now.get(key) for key in keys if now.get(key, _MISSING) != pinned.get(key, _MISSING)}
    out: dict[str, Any] = spec.loads(spec.canonical_json(differing))
    return out


def to_dict(equation: Equation) -> dict[str, Any]:
    """The equation's name and fields, and under ``class`` what `class_record` returns, if anything."""
    record = class_record(equation)
    return {"name": equation.name, **spec.to_dict(equation), **({"class": record} if record else {})}


def from_dict(values: dict[str, Any]) -> Equation:
    """The equation that `to_dict` turned into ``values``; refused if the registered class has changed."""
    fields = dict(values)
    name, recorded = fields.pop("name"), fields.pop("class", {})
    return check_class(spec.build(EQUATIONS[name], fields, name, stored=True), recorded)


def check_class(equation: Equation, recorded: Any) -> Equation:
    """The equation itself if its class agrees with ``recorded``; otherwise an error that says what differs."""
    if not isinstance(recorded, dict):
        raise UserError(f"{equation.name}: the record of its class must be an object, got {recorded!r}")
    now = class_record(equation)
    keys = [key for key in sorted({*now, *recorded}) if now.get(key, _MISSING) != recorded.get(key, _MISSING)]
    if keys:
        then, here = (", ".join(f"{k}={d[k]}" if k in d else f"the usual {k}" for k in keys) for d in (recorded, now))
        raise UserError(
            f"{equation.name}: made by a class with {then}, but the class registered now has {here}; "
            f"register the class that made it"
        )
    return equation
