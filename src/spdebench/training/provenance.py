"""Where a number comes from: versions, commit, device, machine, time, memory."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import torch

from spdebench.version import __version__


def provenance(device: torch.device | str = "cpu", started: str | None = None) -> dict[str, Any]:
    """What a record says of its making; ``started`` is now unless given."""
    return {
        "spdebench": __version__,
        "torch": str(torch.__version__),  # a subclass of str, which a checkpoint would not load
        "python": platform.python_version(),
        "device": device_name(device),
        "machine": f"{platform.system()} {platform.machine()}",
        "commit": commit(),
        "started": started or now(),
    }


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def device_name(device: torch.device | str) -> str:
    """``cuda: NVIDIA H200``, or ``cpu`` with its model where the system tells it."""
    chosen = torch.device(device)
    if chosen.type == "cuda":
        return f"cuda: {torch.cuda.get_device_name(chosen)}"
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return chosen.type
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{chosen.type}: {models[0]}" if models else chosen.type


@cache
def commit() -> str | None:
    """The commit of the checkout that this package runs from, with a + when files differ from it; None elsewhere.

    SPDEBENCH_COMMIT in the environment tells it where the source was copied, without its repository or with an old one.
    """
    told = os.environ.get("SPDEBENCH_COMMIT", "")
    if re.fullmatch(r"[0-9a-f]{7,64}\+?", told):
        return told
    here = Path(__file__).resolve().parent

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)  # else some other project's repository lies around us
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(here.parent))
        return git("rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None


def start_memory_watch(device: torch.device | str) -> None:
    """Count the peak from here on, where a device can."""
    if torch.device(device).type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory_mb(device: torch.device | str) -> float | None:
    """Peak of the memory that tensors took on a GPU, or of the whole process; None where the system does not tell."""
    if torch.device(device).type == "cuda":
        return round(torch.cuda.max_memory_allocated(device) / 1e6, 1)
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak * (1 if sys.platform == "darwin" else 1024) / 1e6, 1)
