"""Converts frozen dataclasses to JSON and back; a value of the wrong type raises a one-line error that names the
field."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from spdebench.errors import UserError
from spdebench.spec import fields_of

T = TypeVar("T")
_NON_FINITE = ("inf", "-inf", "nan")


def encode(value: Any) -> Any:
    """A value for JSON: of dataclasses the fields that differ from their defaults; "inf", "-inf", "nan" as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((f.name, getattr(value, f.name), _default(f)) for f in dataclasses.fields(value))
        return {name: encode(entry) for name, entry, default in pairs if entry != default}
    if isinstance(value, Mapping):
        return {str(key): encode(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [encode(entry) for entry in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _default(f: dataclasses.Field[Any]) -> Any:
    return f.default if f.default_factory is dataclasses.MISSING else f.default_factory()


def build(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """The dataclass with these fields; unknown and missing ones are refused."""
    known = fields_of(cls)
    for key in values:
        if key not in known:
            raise UserError(f"unknown field {short_text(where + str(key))}")
    for f in dataclasses.fields(cls):  # type: ignore[arg-type]
        if f.name not in values and _default(f) is dataclasses.MISSING:
            raise UserError(f"{where}{f.name} is missing")
    return cls(**{key: decode(known[key], value, f"{where}{key}") for key, value in values.items()})


def decode(hint: Any, value: Any, where: str) -> Any:
    """A JSON value as the type ``hint``; a value that does not fit is a `UserError` that names the field ``where``."""
    if hint is Any:
        return value
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        (kind,) = (arm for arm in inner if arm is not type(None))
        return None if value is None else decode(kind, value, where)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return build(hint, _expected(value, dict, "an object", where), f"{where}.")
    if origin is Mapping:
        pairs = _expected(value, dict, "an object", where).items()
        return {_expected(k, str, "text", where): decode(inner[1], v, f"{where}.{k}") for k, v in pairs}
    if origin is tuple:
        entries = _expected(value, list, "a list", where)
        if inner[0] is float and all(type(entry) is float for entry in entries):
            return tuple(entries)  # a shortcut for the largest part of a record
        return tuple(decode(inner[0], entry, where) for entry in entries)
    if hint is float:
        return _number(value, where)
    kind = {"str": "text", "int": "a whole number", "bool": "true or false"}[hint.__name__]
    if hint is int and isinstance(value, bool):
        raise UserError(f"{where} must be {kind}, got {short_text(value)}")
    return _expected(value, hint, kind, where)


def _number(value: Any, where: str) -> float:
    """A number; null means NaN, and the words of `encode` mean infinite numbers and NaN."""
    if value is None or (isinstance(value, str) and value in _NON_FINITE):
        return float(value or "nan")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{where} must be a number, got {short_text(value)}")
    try:
        return float(value)
    except OverflowError:
        raise UserError(f"{where} must be a number, got a whole number beyond all floats") from None


def _expected(value: Any, kind: type[T], called: str, where: str) -> T:
    """The value, if it has this type; otherwise an error that names the field."""
    if not isinstance(value, kind):
        raise UserError(f"{where} must be {called}, got {short_text(value)}")
    return value


def short_text(value: Any) -> str:
    """A value in one short printable line."""
    text = ascii(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."
