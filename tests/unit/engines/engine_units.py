"""Work for the tests of engines, in a module that worker processes can import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import torch

from spdebench.errors import UserError
from spdebench.files import replacing


def square(x: int) -> tuple[int, int]:
    return x * x, torch.get_num_threads()


def dies_once(unit: tuple[str, int]) -> int:
    """The worker is killed when it does the unit 3 for the first time."""
    folder, number = unit
    mark = Path(folder) / f"{number}"
    seen = mark.exists()
    with mark.open("a") as file:
        file.write("x")
    if number == 3 and not seen:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def dies_at_two(number: int) -> int:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def refuses(number: int) -> int:
    raise UserError(f"{number} is not wanted here")


def writes_slowly(unit: tuple[str, int]) -> int:
    folder, number = unit
    with replacing(Path(folder) / f"{number}.txt") as temporary:
        temporary.write_text("half")
        time.sleep(600)
    return number


def occupies(unit: tuple[str, int]) -> tuple[float, float, str | None]:
    """From when to when it ran, by the machine's clock, and which GPUs it was given.

    The first unit waits for the second one, for worker processes need not come up at the same time.
    """
    folder, number = unit
    start = time.monotonic()
    (Path(folder) / f"{number}").touch()
    while len(list(Path(folder).iterdir())) < 2 and time.monotonic() < start + 300:
        time.sleep(0.05)
    time.sleep(1.0)
    return start, time.monotonic(), os.environ.get("CUDA_VISIBLE_DEVICES")


def stops_once(unit: tuple[str, int]) -> int:
    """The worker of unit 1 is stopped, as by a debugger, when it has the unit for the first time."""
    folder, number = unit
    mark = Path(folder) / f"{number}"
    seen = mark.exists()
    mark.touch()
    if number == 1 and not seen:
        os.kill(os.getpid(), signal.SIGSTOP)
    return number
