"""Look-up by name. Declaring a class registers it; third-party packages use entry points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Generic, TypeVar

from spdebench.errors import UserError, unknown

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to classes of one kind. ``builtin`` imports the package's own; ``spdebench.<plural>`` is the group
    of entry points that third parties declare."""

    def __init__(self, kind: str, plural: str, builtin: Callable[[], object]) -> None:
        self.kind = kind
        self.group = f"spdebench.{plural}"
        self._builtin = builtin
        self._items: dict[str, type[T]] = {}
        self._loaded = False

    def add(self, name: str, item: type[T]) -> None:
        old = self._items.get(name)
        if old is not None and (old.__module__, old.__qualname__) != (item.__module__, item.__qualname__):
            raise UserError(f"{self.kind} '{name}' is declared twice: by {old.__module__} and by {item.__module__}")
        self._items[name] = item

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        self._builtin()
        for point in metadata.entry_points(group=self.group):
            point.load()

    def __getitem__(self, name: str) -> type[T]:
        self._load()
        if name not in self._items:
            raise unknown(self.kind, name, self._items)
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted(self._items))

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._items
