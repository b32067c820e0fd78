"""A spec is a frozen dataclass that identifies data or a run: its canonical JSON is hashed.

Values from Python, from JSON and from ``key=value`` arguments go through one strict decoder, so that ``"abc"`` for a
number, an unknown key or a fraction for a count is a one-line error and never a silently different dataset. JSON from
files goes through `loads`, which limits its nesting and its numbers.

A field may be renamed or added without changing any hash, by its metadata:

    field(default=100, metadata={"key": "stop"})      JSON and files keep the key "stop"; users who type it are warned
    field(default=True, metadata={"legacy": False})   left out of the JSON while False; a file without it means False

``metadata={"meaning": "..."}`` is the line with which `spdebench show` explains a field of a user's own class.
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

from spdebench.errors import UserError, unknown, warn_renamed

T = TypeVar("T")

DEPTH = 32
"""How deeply lists and objects in a file may be nested; the package's own files nest six deep."""
LARGEST = 2**63
"""Whole numbers must be smaller than this in absolute value, so that a tensor can hold them."""


def fields_of(cls: type) -> dict[str, Any]:
    """Field names and their resolved types, in declaration order."""
    return dict(_fields_of(cls))


@functools.cache
def _fields_of(cls: Any) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(cls)
    except NameError as error:
        raise UserError(f"class {cls.__name__}: the type of a field cannot be read: {error}") from None
    return {f.name: hints[f.name] for f in dataclasses.fields(cls) if f.init}


def declared_meaning(cls: Any, name: str) -> str:
    """What a field means, from its metadata ``meaning``; empty if it does not say so."""
    return next((str(f.metadata.get("meaning", "")) for f in dataclasses.fields(cls) if f.name == name), "")


def has_field_of_package(cls: type, name: str) -> bool:
    """Whether the field is one of a class of this package: of ``cls`` or of a class above it."""
    ours = (base for base in cls.__mro__ if base.__module__.startswith("spdebench."))
    return any(name in vars(base).get("__dataclass_fields__", ()) for base in ours)


@functools.cache
def keys_of(cls: Any) -> dict[str, str]:
    """The key of each field in canonical JSON and in files, by its name, in declaration order."""
    return {f.name: _key(f) for f in dataclasses.fields(cls) if f.init}


def _key(field: dataclasses.Field[Any]) -> str:
    return str(field.metadata.get("key", field.name))


def to_dict(instance: Any) -> dict[str, Any]:
    """The fields of a dataclass by their keys in files; a new field that has its legacy value is left out."""
    return {
        _key(f): _plain(value)
        for f in dataclasses.fields(instance)
        if not _is_legacy(f, value := getattr(instance, f.name))
    }


def _is_legacy(field: dataclasses.Field[Any], value: Any) -> bool:
    return "legacy" in field.metadata and bool(value == field.metadata["legacy"])


_SCALARS = frozenset((str, int, float, bool, type(None)))


def _plain(value: Any) -> Any:
    """Nested dataclasses as dictionaries; all other values unchanged."""
    if type(value) in _SCALARS:
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return to_dict(value)
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


def canonical_json(value: Any) -> str:
    """One text for one value: sorted keys, no blanks, shortest round-trip floats; non-finite floats are an error."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any, length: int = 10) -> str:
    """The first ``length`` hexadecimal digits of SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


def loads(text: str | bytes, *, allow_nan: bool = False) -> Any:
    """Parse JSON from an untrusted file. ValueError: a repeated key, nesting beyond `DEPTH`, integers beyond `LARGEST`,
    broken Unicode, or (unless allowed) NaN and infinity. The result is safe to recurse into and to write again.
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
    """The object with these entries; ValueError if a key is repeated."""
    out = dict(pairs)
    if len(out) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return out


def _entries(value: Any, allow_nan: bool) -> Iterable[Any]:
    """The values in a list or object; other values are checked."""
    if isinstance(value, dict):
        return (*value, *value.values())
    if isinstance(value, list):
        plain = all(type(entry) is float for entry in value) and (allow_nan or all(map(math.isfinite, value)))
        return () if plain else value
    if isinstance(value, str) and not value.isascii():
        value.encode()  # half a surrogate pair is a ValueError
    elif isinstance(value, float) and not allow_nan and not math.isfinite(value):
        raise ValueError(f"it holds the number {value}")
    elif isinstance(value, int) and abs(value) >= LARGEST:
        raise ValueError("it holds a whole number of more than 63 bits")
    return ()


def build(cls: type[T], values: Mapping[str, Any], label: str, *, stored: bool = False) -> T:
    """An instance of the dataclass ``cls``, every value decoded strictly; ``label`` names it in errors.

    A user's values may have old names, with a warning. ``stored`` values are those that `to_dict` wrote into a file:
    they have the keys of the file only, and a field that is newer than the file takes its legacy value.
    """
    if not isinstance(values, Mapping):
        raise UserError(f"{label}: expected fields by name, got {values!r}")
    if stored:
        named = _from_file(cls, values, label)
    else:
        named = current_names(full_names(cls, values, label), renamed(cls), label)
    known = fields_of(cls)
    _check_declared(cls, label)
    for key in named:
        if key not in known:
            raise unknown(f"key of {label}", str(key), known)
    if lacking := [key for key in _without_default(cls) if key not in named]:
        raise UserError(f"{label}: {lacking[0]} has no value; give {lacking[0]}=VALUE, or a default in the class")
    return cls(**{key: decode(value, known[key], f"{label}: {key}") for key, value in named.items()})


def _check_declared(cls: Any, label: str) -> None:
    """Refuse a class whose fields are ignored because it is not a dataclass, although its parent is one."""
    own = cls.__dict__
    if "__dataclass_params__" not in own and any(name in own for name in own.get("__annotations__", ())):
        raise UserError(f"{label}: write @dataclass(frozen=True, kw_only=True) above class {cls.__name__}")


def _without_default(cls: Any) -> tuple[str, ...]:
    """The fields that must be given."""
    missing = dataclasses.MISSING
    return tuple(f.name for f in dataclasses.fields(cls) if f.init and f.default is f.default_factory is missing)


def _from_file(cls: type, values: Mapping[str, Any], label: str) -> dict[str, Any]:
    """The values of a file by field names, with the legacy values of fields that are newer than the file."""
    names = {key: name for name, key in keys_of(cls).items()}
    for key in values:
        if key not in names:
            raise unknown(f"key of {label}", str(key), names)
    legacy = {f.name: f.metadata["legacy"] for f in dataclasses.fields(cls) if "legacy" in f.metadata}
    return legacy | {names[key]: value for key, value in values.items()}


def full_names(cls: type, values: Mapping[str, Any], label: str) -> dict[str, Any]:
    """The values by the names of fields; ``short_names`` of a class maps other names to them, such as J."""
    short = {key: name for key, name in getattr(cls, "short_names", {}).items() if key not in fields_of(cls)}
    out: dict[str, Any] = {}
    for key, value in values.items():
        name = short.get(key, key)
        if name in out:
            other = next(s for s, full in short.items() if full == name)
            raise UserError(f"{label}: '{other}' and '{name}' are the same field; give one of them")
        out[name] = value
    return out


def renamed(cls: type) -> dict[str, str]:
    """The new name of each renamed field, by its old name."""
    return {key: name for name, key in keys_of(cls).items() if key != name}


def current_names(values: Mapping[str, Any], old: Mapping[str, str], label: str) -> dict[str, Any]:
    """The values under the current names; an old name gives a warning, both names at once are an error."""
    out: dict[str, Any] = {}
    for key, value in values.items():
        name = old.get(key, key)
        if name in out or (name != key and name in values):
            raise UserError(f"{label}: '{key}' is the old name of '{name}'; give '{name}' only")
        if name != key:
            warn_renamed(key, name)
        out[name] = value
    return out


def check(instance: Any, label: str) -> None:
    """Decode the fields of a frozen dataclass in place: ints become floats where a float is expected; other values must
    have the right type."""
    for key, hint in fields_of(type(instance)).items():
        object.__setattr__(instance, key, decode(getattr(instance, key), hint, f"{label}: {key}"))


def parse_overrides(arguments: Iterable[str]) -> dict[str, str]:
    """``["truncation=32", "sigma=0.1"]`` -> ``{"truncation": "32", "sigma": "0.1"}``."""
    out: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or not key or not value:
            raise UserError(f"expected key=value, got '{argument}'")
        if key in out:
            raise UserError(f"'{key}' is given twice, as {out[key]} and {value}; give one value")
        out[key] = value
    return out


def decode(value: Any, hint: Any, where: str) -> Any:
    """``value`` as the type ``hint``, or a one-line error that says what was expected and what was given."""
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
    named = hint.__name__ if isinstance(hint, type) and origin is None else str(hint)
    raise UserError(
        f"{where}: the type of a field is int, float, bool, str, Literal[...] or a tuple such as tuple[int, ...], "
        f"not {named}"
    )


def _decode_tuple(value: Any, inner: Any, where: str) -> tuple[Any, ...]:
    """``tuple[int, ...]`` from a sequence or from text such as ``32,25`` or ``(32, 25)``."""
    if isinstance(value, str):
        value = [part.strip() for part in value.strip().strip("()[]").split(",") if part.strip()]
    if not isinstance(value, (list, tuple)):
        raise UserError(f"{where} must be a list such as 8,8, got {value!r}")
    return tuple(decode(entry, inner, where) for entry in value)


def _decode_bool(value: Any, where: str) -> bool:
    """A value, or the text that a user has typed, as a bool."""
    meanings = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in meanings:
        return meanings[value.lower()]
    raise UserError(f"{where} must be true or false, got {value!r}")


def is_whole_number(value: Any) -> bool:
    """Whether a value is an int, also one of NumPy, and no bool."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _decode_int(value: Any, where: str) -> int:
    """A value, or the text that a user has typed, as an int below 2^63."""
    if isinstance(value, str):
        try:
            number = int(value)
        except ValueError:
            raise UserError(f"{where} must be a whole number, got '{value}'") from None
    elif not is_whole_number(value):
        raise UserError(f"{where} must be a whole number, got {value!r}")
    else:
        number = int(value)
    if abs(number) >= LARGEST:
        raise UserError(f"{where} must be below 2^63, got a number of {number.bit_length()} bits")
    return number


def _decode_float(value: Any, where: str) -> float:
    """A value, or the text that a user has typed, as a finite float."""
    try:
        if isinstance(value, bool):
            raise ValueError
        number = float(value)
    except (TypeError, ValueError):
        raise UserError(f"{where} must be a number, got {value!r}") from None
    except OverflowError:
        raise UserError(f"{where} must be finite, got a whole number too large for a float") from None
    if not math.isfinite(number):
        raise UserError(f"{where} must be finite, got {value!r}")
    return number
