"""A spec is the identity: frozen dataclass -> canonical JSON -> hash.

Values come from Python, JSON, YAML or ``key=value`` words; all go through one strict decoder, so that ``"abc"`` for a
number, an unknown key or a fraction for a count is one clear line and never a silently different dataset. JSON from
files goes through `loads`, which bounds what it may hold.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from spdebench.errors import UserError, unknown

T = TypeVar("T")

DEPTH = 32
"""Lists and objects within each other that a file may have; our own have six."""
LARGEST = 2**63
"""Whole numbers lie below it in size: what a file may count, and what a tensor can hold."""


def fields_of(cls: type) -> dict[str, Any]:
    """Field names and their resolved types, in declaration order."""
    return dict(_fields_of(cls))


@functools.cache
def _fields_of(cls: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls) if f.init}


def canonical_json(value: Any) -> str:
    """One text for one value: sorted keys, no blanks, shortest round-trip floats, non-finite floats refused."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any, length: int = 10) -> str:
    """The first ``length`` hexadecimal digits of SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


def loads(text: str | bytes, *, allow_nan: bool = False) -> Any:
    """JSON that anyone may have written, or ValueError: no key twice, `DEPTH`, `LARGEST`, Unicode, finite numbers.

    What passes can be walked by recursion, converted to float and written again.
    """
    try:
        value = json.loads(text, object_pairs_hook=_no_key_twice)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(str(error).partition("\n")[0]) from None
    level = [value]
    for _ in range(DEPTH + 1):
        if not level:
            return value
        level = [inner for outer in level for inner in _entries(outer, allow_nan)]
    raise ValueError(f"it is nested more than {DEPTH} deep")


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return out


def _entries(value: Any, allow_nan: bool) -> Iterable[Any]:
    """What a list or object holds; other values are checked."""
    if isinstance(value, dict):
        return (*value, *value.values())
    if isinstance(value, list):
        return value
    if isinstance(value, str) and not value.isascii():
        value.encode()  # half a surrogate pair is a ValueError
    elif isinstance(value, float) and not allow_nan and not math.isfinite(value):
        raise ValueError(f"it holds the number {value}")
    elif isinstance(value, int) and abs(value) >= LARGEST:
        raise ValueError("it holds a whole number of more than 63 bits")
    return ()


def build(cls: type[T], values: Mapping[str, Any], label: str) -> T:
    """An instance of the dataclass ``cls``, every value decoded strictly; ``label`` names it in errors."""
    known = fields_of(cls)
    if not isinstance(values, Mapping):
        raise UserError(f"{label}: expected fields by name, got {values!r}")
    for key in values:
        if key not in known:
            raise unknown(f"key of {label}", str(key), known)
    return cls(**{key: decode(value, known[key], f"{label}: {key}") for key, value in values.items()})


def check(instance: Any, label: str) -> None:
    """Decode the fields of a frozen dataclass in place: ints become floats where these are meant, the rest must fit."""
    for key, hint in fields_of(type(instance)).items():
        object.__setattr__(instance, key, decode(getattr(instance, key), hint, f"{label}: {key}"))


def parse_words(words: Iterable[str]) -> dict[str, str]:
    """``["truncation=32", "sigma=0.1"]`` -> ``{"truncation": "32", "sigma": "0.1"}``."""
    out: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key or not value:
            raise UserError(f"expected key=value, got '{word}'")
        if key in out:
            raise UserError(f"'{key}' is given twice")
        out[key] = value
    return out


def decode(value: Any, hint: Any, where: str) -> Any:
    """``value`` as the type ``hint``, or one line that says what was expected and what came."""
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        choices = typing.get_args(hint)
        for choice in choices:
            if value == choice or (isinstance(value, str) and value == str(choice)):
                return choice
        raise unknown(f"value for {where}", str(value), [str(c) for c in choices])
    if origin in (types.UnionType, typing.Union):
        arms = typing.get_args(hint)
        if type(None) in arms and (value is None or value == "none"):
            return None
        inner = [a for a in arms if a is not type(None)]
        if len(inner) == 1:
            return decode(value, inner[0], where)
    if origin is tuple:
        return _decode_tuple(value, typing.get_args(hint)[0], where)
    if hint is bool:
        return _decode_bool(value, where)
    if hint is int:
        return _decode_int(value, where)
    if hint is float:
        return _decode_float(value, where)
    if hint is str:
        if isinstance(value, str):
            return value
        raise UserError(f"{where} must be text, got {value!r}")
    raise TypeError(f"{where}: spec fields of type {hint!r} are not supported")


def _decode_tuple(value: Any, inner: Any, where: str) -> tuple[Any, ...]:
    """``tuple[int, ...]`` from a sequence or from words such as ``32,25`` or ``(32, 25)``."""
    if isinstance(value, str):
        value = [word.strip() for word in value.strip().strip("()[]").split(",") if word.strip()]
    if not isinstance(value, (list, tuple)):
        raise UserError(f"{where} must be a list such as 8,8, got {value!r}")
    return tuple(decode(entry, inner, where) for entry in value)


def _decode_bool(value: Any, where: str) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise UserError(f"{where} must be true or false, got {value!r}")


def _decode_int(value: Any, where: str) -> int:
    if isinstance(value, str):
        try:
            number = int(value)
        except ValueError:
            raise UserError(f"{where} must be a whole number, got '{value}'") from None
    elif isinstance(value, bool) or not hasattr(value, "__index__"):
        raise UserError(f"{where} must be a whole number, got {value!r}")
    else:
        number = int(value)
    if abs(number) >= LARGEST:
        raise UserError(f"{where} must be below 2^63, got a number of {number.bit_length()} bits")
    return number


def _decode_float(value: Any, where: str) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        number = float(value)
    except (TypeError, ValueError):
        raise UserError(f"{where} must be a number, got {value!r}") from None
    except OverflowError:
        raise UserError(f"{where} must be finite, got a whole number beyond all floats") from None
    if not math.isfinite(number):
        raise UserError(f"{where} must be finite, got {value!r}")
    return number
