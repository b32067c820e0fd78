"""What a hostile file may be: strategies that damage bytes and JSON, payloads that would leave a mark, and the law."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from in_children import run_code
from spdebench.errors import UserError

SCALE = float(os.environ.get("SPDEBENCH_FUZZ", "0.5"))
"""Multiplies the number of cases of every fuzz test; `make fuzz` sets it to 10."""


def cases(count: int) -> Any:
    """Settings of a fuzz test with so many cases at scale 1."""
    return settings(max_examples=max(1, int(count * SCALE)), deadline=None, derandomize=True, database=None)


def obeys_the_law(read: Callable[[], Any]) -> Any:
    """The outcome is an object, or a `UserError` of one printable line (then None); anything else goes through."""
    try:
        return read()
    except UserError as error:
        line = str(error)
        assert line and line.isprintable() and len(line) < 1100, line
        return None


# --- bytes --------------------------------------------------------------------------------------------------------
_KINDS = ("flip", "set", "cut", "drop", "insert", "copy", "zero", "tail")
edits = st.lists(
    st.tuples(st.sampled_from(_KINDS), st.integers(0, 1 << 16), st.integers(0, 1 << 16)), min_size=1, max_size=4
)
noise = st.binary(max_size=300)


def edited(data: bytes, steps: list[tuple[str, int, int]]) -> bytes:
    """Bits flipped, bytes set, files cut, pieces dropped, inserted, copied over others or cleared."""
    out = bytearray(data)
    for kind, where, what in steps:
        if not out:
            break
        at, length = where % len(out), 1 + what % 64
        if kind == "flip":
            out[at] ^= 1 << what % 8
        elif kind == "set":
            out[at] = what % 256
        elif kind == "cut":
            del out[at:]
        elif kind == "drop":
            del out[at : at + length]
        elif kind == "insert":
            out[at:at] = bytes((what + k) % 256 for k in range(length))
        elif kind == "copy":
            source = what % len(out)
            out[at : at + length] = out[source : source + length]
        elif kind == "zero":
            out[at : at + length] = bytes(len(out[at : at + length]))
        else:  # near the end, where Parquet and zip keep what tells them all the rest
            out[-1 - where % min(len(out), 512)] = what % 256
    return bytes(out)


# --- JSON ---------------------------------------------------------------------------------------------------------
_RAW = ("NaN", "-Infinity", "1e999999", "-1e-999999", "9" * 5000, "[" * 5000 + "]" * 5000, '{"a":1,"a":2}', '"\\ud800"')
"""Texts that stand for a value as they are; Python's own writer would not write most of them."""
_MARK = "\u00a7raw"
hostile_values = st.one_of(
    st.sampled_from(
        [
            *(None, True, False, 0, -1, 1, 2, 3, 7, 64, 10**6, 10**12, 2**62, -(2**62), 0.5, -0.0, 1e308, 5e-324, ""),
            *("../../x", "/etc/passwd", "a\x00b", "\x1b[31mred\n", "x" * 3000, "\u202e\u0000é", "NaN", "1e999", "0x10"),
            *(
                [],
                {},
                [[]],
                [None],
                {"": {}},
                [1, "a", {}],
                {"equation": "phi41"},
                ["u", "dw"],
                [10**12, 10**12],
                "none",
            ),
        ]
    ),
    st.sampled_from([f"{_MARK}{k}" for k in range(len(_RAW))]),
    st.text(max_size=12),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
)
changes = st.lists(
    st.tuples(st.sampled_from(("set", "delete", "add", "swap", "double")), st.integers(0, 1 << 12), hostile_values),
    min_size=1,
    max_size=3,
)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of everything within a value."""
    found: list[tuple[Any, Any]] = []
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        found += [(value, key), *_places(value[key])]
    return found


def changed(value: Any, steps: list[tuple[str, int, Any]]) -> str:
    """The JSON of a value in which fields were set, deleted, added, exchanged or written twice."""
    root = [copy.deepcopy(value)]
    doubled = False
    for kind, where, what in steps:
        places = _places(root)
        home, key = places[where % len(places)]
        if kind == "delete" and home is not root:
            del home[key]
        elif kind == "add" and isinstance(home[key], dict):
            home[key][what if isinstance(what, str) else "extra"] = 1
        elif kind == "swap":
            other, name = places[(where * 7 + 1) % len(places)]
            nested = _within(home[key], other) or _within(other[name], home)
            if home is not root and other is not root and not nested:
                home[key], other[name] = other[name], home[key]
        elif kind == "double":
            doubled = True
        else:
            home[key] = copy.deepcopy(what)
    text = json.dumps(root[0])
    for k, raw in enumerate(_RAW):
        text = text.replace(json.dumps(f"{_MARK}{k}"), raw)
    return f'{{"version":1,{text[1:]}' if doubled and text[:1] == "{" else text


def _within(outer: Any, inner: Any) -> bool:
    return outer is inner or any(home[key] is inner for home, key in _places(outer))


# --- code ---------------------------------------------------------------------------------------------------------
class Payload:
    """Unpickled carelessly it makes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __reduce__(self) -> Any:
        return os.mkdir, (self.mark,)


# --- memory -------------------------------------------------------------------------------------------------------
def in_little_memory(code: str, arguments: Sequence[object], megabytes: int = 1500) -> list[str]:
    """Run ``code`` for each ``x`` of the arguments in one child that may have so much more address space than its
    libraries take; a line for each: ``refused: ...`` for a `UserError`, else ``taken``. A crash fails."""
    lines = [
        "import resource, sys",
        "from pathlib import Path",
        "import torch",
        "from spdebench.data import open_dataset",
        "from spdebench.data.predictions import read_prediction",
        "from spdebench.data.published import import_published",
        "from spdebench.errors import UserError",
        "from spdebench.records.store import read",
        "from spdebench.training import checkpoints, open_run",
        "torch.set_num_threads(1)",
        "pages = int(open('/proc/self/statm').read().split()[0])",
        f"limit = pages * resource.getpagesize() + ({megabytes} << 20)",
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))",
        "for x in map(Path, sys.argv[1:]):",
        "    try:",
        *("        " + line for line in code.strip().splitlines()),
        "        print('taken')",
        "    except UserError as error:",
        "        print('refused:', error)",
    ]
    done = run_code("\n".join(lines), *arguments)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout.splitlines()
