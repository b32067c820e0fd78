"""How a record was made: versions, commit, device, machine, time and memory."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from spdebench.engines import peak_memory, reset_peak_memory
from spdebench.version import __version__, commit


def provenance(device: torch.device | str = "cpu", started: str | None = None) -> dict[str, Any]:
    """Versions, device, machine, commit and start time (now unless given) for a record."""
    return {
        "spdebench": __version__,
        "torch": str(torch.__version__),  # it is a subclass of str
        "python": platform.python_version(),
        "device": device_name(device),
        "machine": f"{platform.system()} {platform.machine()}",
        "commit": commit(),
        "started": started or now(),
    }


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def device_type(device: str) -> str:
    """``cuda`` or ``cpu``, from a device (``cuda:1``) or from its text in a record (``cuda: NVIDIA H200``)."""
    return device.partition(":")[0]


def device_name(device: torch.device | str) -> str:
    """``cuda: NVIDIA H200``, or ``cpu`` with the model of the processor if it is known."""
    chosen = torch.device(device)
    if chosen.type == "cuda":
        return f"cuda: {torch.cuda.get_device_name(chosen)}"
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return chosen.type
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{chosen.type}: {models[0]}" if models else chosen.type


def start_memory_watch(device: torch.device | str) -> None:
    """Let `peak_memory_mb` start again, so that a run does not count the memory of what its process did before."""
    if torch.device(device).type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        reset_peak_memory()


def peak_memory_mb(device: torch.device | str) -> float | None:
    """Peak memory of the tensors on a GPU, or of the whole process on a processor; None if it is not known."""
    if torch.device(device).type == "cuda":
        return round(torch.cuda.max_memory_allocated(device) / 1e6, 1)
    peak = peak_memory()
    return None if peak is None else round(peak / 1e6, 1)
