"""``--with`` a copy of this file every chunk and every epoch takes longer and is noted, so that a drill can hit them.

`SETTINGS` of the copy: seconds more for a ``chunk`` and an ``epoch``; the file ``notes`` for a line before and after
each; the wall clock jumps by ``clock`` seconds, there and back, whenever it is read. It is a file, because workers of a
cluster do not have the driver's environment.
"""

from __future__ import annotations

import importlib
import itertools
import os
import time
from collections.abc import Callable
from typing import Any

SETTINGS: dict[str, Any] = {}

generate = importlib.import_module("spdebench.data.generate")
loop = importlib.import_module("spdebench.training.loop")


def note(line: str) -> None:
    descriptor = os.open(SETTINGS["notes"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def slow_down(owner: Any, name: str, unit: str, words: Callable[..., str]) -> None:
    real = getattr(owner, name)

    def slowly(*arguments: Any, **named: Any) -> Any:
        note(f"began {words(*arguments)} in {os.getpid()}")
        time.sleep(SETTINGS[unit])
        result = real(*arguments, **named)
        note(words(*arguments))
        return result

    setattr(owner, name, slowly)


slow_down(generate, "solved_rows", "chunk", lambda identity, rows, device: f"chunk {rows.start}")
slow_down(loop.Fit, "run_epoch", "epoch", lambda fit: "epoch")

if jump := SETTINGS["clock"]:
    clock, turns = time.time, itertools.cycle((0.0, jump, -jump))
    time.time = lambda: clock() + next(turns)
