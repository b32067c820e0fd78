"""Lookup by name. Declaring a class registers it, `register_table` registers a table. Other packages are found by their
entry points, single files are run by `extend`."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
import os
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Generic, TypeVar

from spdebench.errors import UnknownName, UserError

T = TypeVar("T")

FILES = "SPDEBENCH_WITH"
"""Environment variable with the Python files of `--with`, which workers inherit: a JSON list, or paths as in PATH."""


WITH: list[str] = []
"""The files of `--with` as the user typed them."""

_PREFIX = "spdebench_with_"
_FILES: dict[str, tuple[Path, str]] = {}
"""Module of a `--with` file -> its path and the first digits of its SHA-256."""
_declared = 0  # how many things were declared in this process, other than classes of this package


def command(*words: str | os.PathLike[str]) -> str:
    """The command line ``spdebench WORDS``, with the user's `--with` files repeated, for messages to the user.

    Paths are quoted where a shell needs it; text is kept as it is.
    """
    quoted = (word if isinstance(word, str) else shlex.quote(os.fspath(word)) for word in words if word)
    return " ".join(["spdebench", *(f"--with {shlex.quote(file)}" for file in WITH), *quoted])


def extend(files: Sequence[str | os.PathLike[str]]) -> None:
    """Run Python files that declare classes, in this process and in its worker processes."""
    known = _listed(os.environ.get(FILES, ""))
    for file in files:
        path = str(Path(file).resolve())
        if path not in known:
            known.append(path)
    os.environ[FILES] = json.dumps(known) if known else ""
    for file in known:
        _run_file(Path(file))


def _listed(text: str) -> list[str]:
    """The files in the environment variable; a single path may contain a colon."""
    if text.startswith("["):
        try:
            return [str(file) for file in json.loads(text)]
        except ValueError:
            raise UserError(
                f"{FILES} must be a JSON list of Python files, or paths separated by '{os.pathsep}'"
            ) from None
    return [text] if os.path.isfile(text) else [file for file in text.split(os.pathsep) if file]


def _module_name(path: Path) -> str:
    """``spdebench_with_STEM``, followed by a hash of the path if another file with this stem is loaded."""
    name = f"{_PREFIX}{path.stem}"
    taken = sys.modules.get(name)
    if taken is None or getattr(taken, "__file__", None) == str(path):
        return name
    return f"{name}_{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}"


def _run_file(path: Path) -> None:
    """Import a Python file, once."""
    name = _module_name(path)
    if name in sys.modules:
        return
    if not path.is_file():
        raise UserError(f"no such file: {path.name}; --with takes a Python file that declares classes")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"{path.name} is not a Python file; --with takes one that declares classes")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _FILES[name] = path, hashlib.sha256(path.read_bytes()).hexdigest()[:10]
    before = _declared
    try:
        spec.loader.exec_module(module)
        classes = [item for item in vars(module).values() if isinstance(item, type) and item.__module__ == name]
        if classes and _declared == before:
            raise UserError(
                f"{path.name} declares nothing: a class is declared by its name, as in class Fisher(Equation, "
                f"name='fisher'), and a table by register_table(...)"
            )
    except UserError:
        del sys.modules[name]
        raise
    except Exception as error:
        del sys.modules[name]
        where = (
            mistake_in_file(error) or f"{path.name}: {_kind_and_message(error)}"
        )  # a mistake of syntax names its line
        raise UserError(f"--with {where}") from error


def source(item: object) -> str:
    """The version of the `--with` file that declares a class, ``1a2b3c4d5e of mine.py``; empty for other classes."""
    if item.__module__ not in _FILES:
        return ""
    path, digest = _FILES[item.__module__]
    return f"{digest} of {path.name}"


def changed_source(stated: str | None, item: object) -> str:
    """``version A, which has changed (now B)`` if the `--with` file that declares a class is not the one that is stated
    in data or in a run; empty if it is, or if one of the two is not known."""
    now = source(item)
    return f"version {stated}, which has changed (now {now})" if stated and now and stated != now else ""


def mistake_in_file(error: BaseException) -> str:
    """One line with the place of an error that was raised in or below a `--with` file; empty for other errors.

    The text of the traceback is searched, because that of a worker process arrives as text.
    """
    files = {str(path) for path, _ in _FILES.values()}
    places = re.findall(r'File "(.+?)", line (\d+)', "".join(traceback.format_exception(error)))
    own = [(Path(file).name, line) for file, line in places if file in files]
    return f"{own[-1][0]}, line {own[-1][1]}: {_kind_and_message(error)}" if own else ""


def _kind_and_message(error: BaseException) -> str:
    """The kind of an error and its message."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _signature(function: Any) -> str:
    """``(self, state: State, dw: Tensor) -> State``, without the quotes of annotations that are kept as text."""
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))


def _check_methods(what: str, cls: type) -> None:
    """Refuse a method of a user's class that cannot be called as the method of this package that it replaces.

    The method may be that of a class above it, which has no name. A decorated method takes what its decorator takes.
    """
    ours = [base for base in cls.__mro__ if base.__module__.startswith("spdebench.")]
    for method in sorted({key for base in ours for key in vars(base)}):
        owner = next(base for base in cls.__mro__ if method in vars(base))
        own, above = vars(owner)[method], next(vars(base)[method] for base in ours if method in vars(base))
        special = method.startswith("__") and (method != "__init__" or "__dataclass_fields__" in vars(owner))
        if owner in ours or special or not inspect.isfunction(own) or not inspect.isfunction(above):
            continue
        wanted = inspect.signature(above).parameters.values()
        if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in wanted):
            continue
        named = {p.name: None for p in wanted if p.kind == p.KEYWORD_ONLY}
        taken = inspect.signature(own, follow_wrapped=False)
        try:
            taken.bind(*(None for p in wanted if p.name not in named), **named)
        except TypeError:
            names = (", ".join(each.parameters) for each in (inspect.signature(above), taken))
            raise UserError(
                "{}: {}.{} must take ({}); it takes ({})".format(what, owner.__name__, method, *names)
            ) from None


class Declarations(Generic[T]):
    """Things of one kind by name. ``builtin`` declares those of this package; other packages declare theirs as entry
    points of the group ``spdebench.<plural>``."""

    def __init__(self, kind: str, plural: str, builtin: Callable[[], object]) -> None:
        self.kind = kind
        self.group = f"spdebench.{plural}"
        self._builtin = builtin
        self._items: dict[str, T] = {}
        self._loaded = False

    def add(self, name: str, item: T) -> None:
        """Register a thing; a class must have all abstract methods, and two different things cannot have one name."""
        for method in dir(item):
            known = getattr(item, method, None) if isinstance(item, type) else None
            if getattr(known, "__isabstractmethod__", False):
                where = f"class {getattr(item, '__name__', '')}"
                raise UserError(f"{self.kind} '{name}': {where} has no method {method}{_signature(known)}")
        if isinstance(item, type) and not item.__module__.startswith("spdebench."):
            _check_methods(f"{self.kind} '{name}'", item)
        old = self._items.get(name)
        if old is not None and _origin(old) != _origin(item):
            places = f": by {old.__module__} and by {item.__module__}" if isinstance(item, type) else ""
            raise UserError(f"{self.kind} '{name}' is declared twice{places}; choose another name")
        self._items[name] = item
        global _declared
        _declared += not (isinstance(item, type) and item.__module__.startswith("spdebench."))

    def _load(self) -> None:
        """Declare everything, once: this package's own, those of entry points, and those of `--with` files."""
        if self._loaded:
            return
        self._loaded = True
        self._builtin()
        for point in metadata.entry_points(group=self.group):
            point.load()
        extend(())

    def __getitem__(self, name: str) -> T:
        self._load()
        if name not in self._items:
            raise UnknownName(self.kind, name, self._items)
        return self._items[name]

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._items

    def values(self) -> list[T]:
        """Everything that is declared, in the order of declaration."""
        self._load()
        return list(self._items.values())


class Registry(Declarations[type[T]], Generic[T]):
    """Names to classes of one kind; iterating gives the names, sorted."""

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted(self._items))


def _origin(item: object) -> object:
    """The identity of a declared thing: module and name of a class; any other thing itself."""
    return (item.__module__, item.__qualname__) if isinstance(item, type) else item
