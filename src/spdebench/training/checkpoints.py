"""Checkpoints: each belongs to one run and is written atomically; reading one runs no code."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spdebench import tensors
from spdebench.errors import Damaged, UserError
from spdebench.version import made_with, what_differs

SHARE = 0.02  # the fraction of the time that writing checkpoints may take
FIRST = 1.0  # seconds that the first checkpoint is assumed to take


class Paused(Exception):
    """Training was interrupted: its state is in the checkpoint, and the same call continues."""


def save(path: Path, content: dict[str, Any], digest: str, device: str = "cpu") -> None:
    """Write tensors and plain values with the digest of the run they belong to, and what they were made with."""
    tensors.save(path, {**content, "digest": digest, "made": made_with(device)})


def check_made(state: dict[str, Any], device: str) -> str:
    """The differences between the code and device that wrote a checkpoint and the current ones, as text."""
    made = state.get("made")
    return what_differs(made if isinstance(made, dict) else {}, made_with(device))


def load(path: Path, digest: str) -> dict[str, Any]:
    """What `save` wrote for this run, on the host; anything else is a one-line error."""
    try:
        content = tensors.load(path)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error}); remove it to train from the start") from None
    except ValueError as error:
        raise Damaged(f"{path} cannot be read ({error}); remove it to train from the start") from None
    if (found := content.get("digest")) != digest:
        raise UserError(f"{path} belongs to run {found}, not to {digest}; remove it or choose another folder")
    return content


class CheckpointWriter:
    """Writes a checkpoint every ``seconds``, or less often, so that writing takes at most `SHARE` of the time."""

    def __init__(self, path: Path, digest: str, seconds: float, device: str = "cpu") -> None:
        self.path, self.digest, self.seconds, self.device = path, digest, seconds, device
        self.taken = FIRST  # seconds that the last checkpoint took
        self._next = time.monotonic() + seconds

    def offer(self, state: Callable[[], dict[str, Any]], now: bool = False) -> None:
        """Write ``state()`` if it is time for a checkpoint, or at once if ``now``."""
        if not now and time.monotonic() < self._next:
            return
        start = time.monotonic()
        save(self.path, state(), self.digest, self.device)
        self.taken = time.monotonic() - start
        self._next = time.monotonic() + max(self.seconds, self.taken / SHARE if self.seconds else 0.0)
