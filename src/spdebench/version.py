"""The version of the package, read by packaging, and the versions and device that every file of ours states."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


@cache
def commit() -> str | None:
    """The commit of the checkout that this package runs from, with a + if files differ from it; None if there is none.

    The environment variable SPDEBENCH_COMMIT takes precedence, for sources that were copied without their repository.
    """
    given = os.environ.get("SPDEBENCH_COMMIT", "")
    if re.fullmatch(r"[0-9a-f]{7,64}\+?", given):
        return given
    package = Path(__file__).resolve().parent

    def git(*args: str) -> str:
        command = ["git", "-C", str(package), *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)  # fails if the repository is that of another project
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(package))
        return git("rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None


def made_with(device: str, source: str = "") -> dict[str, str]:
    """Versions, machine and device, on which the last bits of data may depend in addition to their spec.

    ``source`` is the version of the user's own file that declares the equation (`registry.source`), if there is one.
    """
    import torch  # slow to import

    made = {
        "spdebench": __version__,
        "commit": commit() or "",
        "torch": torch.__version__.split("+")[0],
        "machine": platform.machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "device": torch.device(device).type,
        "source": source,
    }
    return {key: value for key, value in made.items() if value}


def what_differs(made: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The differences as text: ``spdebench 0.1.0 (now 0.2.0), device cuda (now cpu)``; empty if there are none.

    The instruction set ``cpu`` is not compared, because the machines of a cluster may differ in it.
    """
    keys = [key for key in dict.fromkeys((*made, *now)) if key != "cpu" and made.get(key) != now.get(key)]
    return ", ".join(f"{key} {_short(made.get(key))} (now {_short(now.get(key))})" for key in keys)


def _short(value: Any) -> str:
    """A word; of a commit the first digits, and whether files had changed."""
    word = "not stated" if value is None else str(value)
    return f"{word[:10]}{'+' * word.endswith('+')}" if re.fullmatch(r"[0-9a-f]{12,64}\+?", word) else word[:40]
