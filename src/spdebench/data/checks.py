"""Checks and estimates before anything is computed: the device, the folder, aliasing, memory, disk space and time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import torch

from spdebench.data.generation_status import parts_folder
from spdebench.data.identity import DatasetSpec
from spdebench.engines import check_engine
from spdebench.equations import Equation
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.files import check_free_disk, check_writable, existing_part
from spdebench.solvers import simulate

PROCESS_BYTES, CHUNK_COPIES = 400 << 20, 6  # measured: 330 MB and 2 to 8 times the chunk, in sum always below this


def device_kind(device: str) -> str:
    """The kind of a device, cpu or cuda; this machine need not have it."""
    try:
        kind = torch.device(device).type
    except RuntimeError:
        kind = ""
    if kind not in ("cpu", "cuda"):
        raise UserError(f"unknown device '{device}'; use cpu or cuda")
    return kind


def check_device(device: str) -> None:
    """Raise an error if this machine does not have the device."""
    if device_kind(device) != "cuda":
        return
    if not torch.cuda.is_available():
        raise UserError("there is no usable CUDA device on this machine; use --device cpu")
    if (torch.device(device).index or 0) >= (count := torch.cuda.device_count()):
        raise UserError(f"this machine has no device {device}; its last one is cuda:{count - 1}")


def check_aliasing(equation: Equation, allowed: bool) -> None:
    """Raise an error if the noise aliases on the grid and the caller has not allowed it."""
    if not allowed and (message := equation.aliasing_message()):
        raise UserError(f"{message}; to make such data, as the paper does, add --allow-aliasing (allow_aliasing=True)")


def check_where(device: str, engine: str) -> None:
    """Raise an error if the engine cannot use the device; with Ray this machine itself needs no GPU."""
    check_engine(engine)
    if engine == "local":
        check_device(device)
    elif device_kind(device) == "cuda" and device != "cuda":
        raise UserError(f"with --engine {engine} the cluster chooses the GPU: use --device cuda, not {device}")


def memory_of(identity: DatasetSpec) -> int:
    """Estimated bytes of main memory for one chunk: those of the process and several copies of the chunk."""
    return PROCESS_BYTES + CHUNK_COPIES * identity.chunk * identity.sample_bytes


def check_folder(folder: Path, option: str = "--out") -> None:
    """Raise an error if the folder cannot be created or written to; nothing is left there.

    ``option`` is the one that chooses the folder; empty if it is an argument.
    """
    try:
        check_writable(existing_part(folder))
    except OSError as error:
        chosen = f" with {option}" if option else ""
        raise UserError(f"cannot write into {folder} ({error.strerror}); choose another folder{chosen}") from None


def disk_bytes(identity: DatasetSpec) -> int:
    """Peak disk space of a generation: the chunks and the file, which compresses little."""
    return 2 * identity.total * identity.sample_bytes


def check_disk(identities: Sequence[DatasetSpec], folder: Path) -> None:
    """Raise an error if the disk has too little room for these files and their missing chunks."""
    present = 0
    for identity in identities:
        for path in parts_folder(folder / identity.file_name).glob("chunk-*.f4"):
            with suppress(FileNotFoundError):  # another process may have removed it now
                present += path.stat().st_size
    need, what = sum(map(disk_bytes, identities)) - present, " and ".join(each.rows_text for each in identities)
    check_free_disk(need, folder, what, "use a smaller n or another disk")


def estimate(identity: DatasetSpec, workers: int = 1, device: str = "cpu") -> tuple[int, float]:
    """(bytes of the file, seconds of the generation), the latter from the time of solving a few samples."""
    check_device(device)
    probe = range(min(identity.n, 8))
    with without_aliasing_warning():
        simulate(identity.equation, identity.seed, probe[:1], device=device)
        few = _seconds(identity, probe, device)
        more = _seconds(identity, range(min(identity.n, 4 * len(probe))), device)
    per_sample = max(more - few, 0.25 * more) / max(1, min(identity.n, 32) - len(probe))
    return identity.total * identity.sample_bytes, few + per_sample * identity.total / max(1, workers)


def _seconds(identity: DatasetSpec, samples: range, device: str) -> float:
    """The time of solving these samples."""
    start = time.perf_counter()
    simulate(identity.equation, identity.seed, samples, device=device)
    return time.perf_counter() - start
