"""Whether the fields that a class of a user's own sets have an effect, told in one line."""

from __future__ import annotations

import dataclasses
import inspect
import types
from typing import Any

from spdebench.errors import UserError


def refuse_fields_without_effect(cls: type, name: str, *, decorated: bool) -> None:
    """Refuse a value of a field that a dataclass ignores, keeping the default of the class above.

    It ignores a value without a type, and all values of a class without the decorator, which is applied to ``cls``
    after its declaration (``decorated``: it would have been).
    """
    if cls.__module__.startswith("spdebench."):
        return
    for key in sorted({each.name for above in cls.__mro__[1:] for each in _fields_of(above)}):
        owner = next(each for each in cls.__mro__ if key in vars(each) or key in inspect.get_annotations(each))
        if owner.__module__.startswith("spdebench."):
            continue
        known = "__dataclass_fields__" in vars(owner) or (owner is cls and not decorated)
        typed = key in inspect.get_annotations(owner)
        if not (known and typed):
            _refuse_field(owner, key, vars(owner).get(key), name, typed=typed)


def _refuse_field(owner: type, key: str, value: Any, name: str, *, typed: bool) -> None:
    """Say how a class sets a field; a slot or a property that can be set is no mistake."""
    if isinstance(value, types.MemberDescriptorType) or (isinstance(value, property) and value.fset is not None):
        return
    if isinstance(value, dataclasses.Field):
        value = value.default
    if callable(value) or hasattr(value, "__get__"):
        raise UserError(
            f"equation '{name}': class {owner.__name__} defines {key}, which is the name of a field; choose another "
            f"name"
        )
    if typed:
        raise UserError(
            f"equation '{name}': class {owner.__name__} sets the field {key} and is not a dataclass, so this has no "
            f"effect; write @dataclass(frozen=True, kw_only=True) above the class"
        )
    raise UserError(
        f"equation '{name}': class {owner.__name__} sets the field {key} without a type, which has no effect; "
        f"write {key}: {type(value).__name__} = {value!r}"
    )


def _fields_of(cls: type) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
