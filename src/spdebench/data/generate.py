"""Generate a dataset in chunks that survive an interruption, then put them into one file.

Each chunk is written beside the target as raw float32 with its SHA-256 behind it, atomically; a finished chunk is never
computed again, a damaged one is. The file is assembled from the chunks in order, so that it does not depend on how many
workers there were or how often they were stopped.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from spdebench.data.identity import DatasetSpec, from_json
from spdebench.data.store import Writer, made_with, open_dataset
from spdebench.engines import run
from spdebench.equations import Equation
from spdebench.errors import FoldingWarning, UserError, folding_known
from spdebench.files import replacing
from spdebench.solvers import simulate
from spdebench.spec import canonical_json

Report = Callable[[int, int, float], None]
"""Called after each chunk: samples done anew, samples found done, max|u|."""


@dataclass(frozen=True)
class _Unit:
    """One chunk to make: all that a worker needs, as plain values."""

    spec: str
    index: int
    folder: str
    device: str


def generate(
    equation: Equation,
    *,
    n: int,
    seed: int = 0,
    out: str | os.PathLike[str] = "data",
    chunk: int = 0,
    workers: int = 1,
    device: str = "cpu",
    report: Report | None = None,
) -> Path:
    """Make the dataset and return its path; one that is there already is left alone."""
    identity = DatasetSpec(equation=equation, n=n, seed=seed, chunk=chunk)
    check_device(device)
    folder = Path(out)
    path = folder / identity.file_name
    if path.exists():
        open_dataset(path)  # a damaged file is an error, not a result
        return path
    check_folder(folder)
    check_disk(identity, folder)
    parts = folder / f".{path.stem}.parts"
    if message := equation.folding_message():
        warnings.warn(message, FoldingWarning, stacklevel=2)
    todo = [i for i in range(identity.chunks) if read_part(identity, parts, i) is None]
    if report and (found := n - sum(len(identity.rows(i)) for i in todo)):
        report(0, found, 0.0)
    text = canonical_json(identity.to_dict())
    results = run(make_part, [_Unit(text, i, str(parts), device) for i in todo], workers)
    parts.mkdir(parents=True, exist_ok=True)
    for index, largest in results:
        if report:
            report(len(identity.rows(index)), 0, largest)
    assemble(identity, parts, path, device)
    shutil.rmtree(parts)
    return path


def make_part(unit: _Unit) -> tuple[int, float]:
    """Solve one chunk and write it; returns its index and max|u|."""
    identity = from_json(unit.spec)
    with folding_known():  # said once by `generate`
        paths = simulate(identity.equation, identity.seed, identity.rows(unit.index), device=unit.device)
    digest = hashlib.sha256()
    with replacing(_part_path(Path(unit.folder), unit.index)) as temporary, temporary.open("wb") as file:
        for tensor in (paths.u0, paths.dw, paths.u):
            values = np.ascontiguousarray(tensor.cpu().numpy(), dtype="<f4").reshape(-1).data
            digest.update(values)
            file.write(values)
        file.write(digest.digest())
    return unit.index, float(paths.u.abs().max())


def read_part(identity: DatasetSpec, folder: Path, index: int) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The arrays of a chunk, or None if it is missing or damaged."""
    path = _part_path(folder, index)
    rows = len(identity.rows(index))
    size = rows * identity.sample_bytes
    if not path.exists() or path.stat().st_size != size + 32:
        return None
    raw = path.read_bytes()
    if hashlib.sha256(raw[:size]).digest() != raw[size:]:
        return None
    values = np.frombuffer(raw, dtype="<f4", count=size // 4)
    space, whole = math.prod(identity.shape[1:]), math.prod(identity.shape)
    u0, dw, u = np.split(values, [rows * space, rows * (space + whole)])
    return (
        u0.reshape(rows, *identity.shape[1:]),
        dw.reshape(rows, *identity.shape),
        u.reshape(rows, *identity.shape),
    )


def assemble(identity: DatasetSpec, parts: Path, path: Path, device: str) -> None:
    """Put the chunks, in order, into the final file."""
    shapes = {"u0": identity.shape[1:], "dw": identity.shape, "u": identity.shape}
    with Writer(path, identity.to_dict(), shapes, identity.row_group, made_with(device)) as writer:
        for index in range(identity.chunks):
            arrays = read_part(identity, parts, index)
            if arrays is None:
                raise UserError(f"chunk {index} of {path.name} was lost or damaged; type the same command again")
            writer.write(arrays)


def _part_path(folder: Path, index: int) -> Path:
    return folder / f"chunk-{index:06d}.f4"


# --- before anything is computed ----------------------------------------------------------------------------------
def check_device(device: str) -> None:
    try:
        kind = torch.device(device).type
    except RuntimeError:
        raise UserError(f"unknown device '{device}'; use cpu or cuda") from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise UserError("device cuda was asked for, but none can be used here; use --device cpu")


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written, or made; nothing is left there."""
    try:
        place = _existing(folder)
        probe = place / f".probe.{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UserError(f"cannot write into {folder} ({error.strerror}); choose another folder with --out") from None


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(p for p in (folder, *folder.resolve().parents) if p.exists())


def disk_bytes(identity: DatasetSpec) -> int:
    """What generation needs at its peak: the chunks and the file, which compresses little."""
    return 2 * identity.n * identity.sample_bytes


def check_disk(identity: DatasetSpec, folder: Path) -> None:
    free, need = shutil.disk_usage(_existing(folder)).free, disk_bytes(identity)
    if need > free:
        raise UserError(
            f"{need / 1e9:.2f} GB are needed in {folder}, {free / 1e9:.2f} GB are free; lower n or use another disk"
        )


def estimate(identity: DatasetSpec, workers: int = 1, device: str = "cpu") -> tuple[int, float]:
    """(bytes of the file, seconds): the time from solving a few samples, scaled."""
    check_device(device)
    probe = range(min(identity.n, 8))
    with folding_known():
        simulate(identity.equation, identity.seed, probe[:1], device=device)
        few = _seconds(identity, probe, device)
        more = _seconds(identity, range(min(identity.n, 4 * len(probe))), device)
    each = max(more - few, 0.25 * more) / max(1, min(identity.n, 32) - len(probe))
    return identity.n * identity.sample_bytes, few + each * identity.n / max(1, workers)


def _seconds(identity: DatasetSpec, samples: range, device: str) -> float:
    start = time.perf_counter()
    simulate(identity.equation, identity.seed, samples, device=device)
    return time.perf_counter() - start
