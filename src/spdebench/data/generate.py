"""Generate a dataset in chunks that survive an interruption, then assemble them into one file.

Each chunk is written whole into a folder next to the target: raw float32, the versions and device that made it as JSON,
the SHA-256 of both, and the length of the JSON. A finished chunk is never computed again, a damaged one is, and a chunk
of other code or another kind of device is refused. The chunks are assembled in order, so that the file does not depend
on the number of workers, on where they ran or on interruptions.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import socket
import struct
import time
import warnings
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from spdebench.data.checks import check_aliasing, check_disk, check_folder, check_where, device_kind, memory_of
from spdebench.data.generation_status import GenerationWatch, parts_folder
from spdebench.data.identity import DatasetSpec, from_json
from spdebench.data.rows import solved_rows
from spdebench.data.store import open_dataset
from spdebench.data.writer import Writer
from spdebench.engines import Need, check_workers, holder_of, locked, run
from spdebench.equations import Equation, as_equation
from spdebench.errors import Damaged, NoiseWarning, UserError
from spdebench.files import replacing, set_aside
from spdebench.registry import changed_source, source
from spdebench.spec import canonical_json, loads
from spdebench.version import made_with, what_differs

Report = Callable[[int, int, float], None]
"""Called after each chunk with the number of samples solved now, the number found on disk, and max|u|."""


GPU_SHARE = 0.25  # of a GPU that a chunk asks for on a cluster: solving takes less time than writing
MOST_MADE = 4096  # the most bytes of the versions and device that a chunk states
PATIENCE = 30.0  # seconds until a chunk that another machine has written must be visible here


@dataclass(frozen=True)
class _Unit:
    """One chunk to be made, as plain values that can be sent to a worker."""

    spec: str
    index: int
    folder: str
    device: str


def generate(
    equation: Equation | str,
    *,
    n: int,
    seed: int = 0,
    out: str | os.PathLike[str] = "data",
    chunk: int = 0,
    seen: int | None = None,
    members: int = 1,
    workers: int | None = None,
    device: str = "cpu",
    engine: str = "local",
    allow_aliasing: bool = False,
    report: Report | None = None,
    quiet: bool = False,
    force: bool = False,
) -> Path:
    """Generate the dataset and return its path; an existing file is kept. A name means the equation's defaults.

    ``seen`` also stores dw_seen, the increments of the noise modes that this truncation keeps; ``members`` above 1
    makes a second file with members of the law of u given u0 and dw_seen, for the test part (`Dataset.members`).

    ``workers`` is the number of chunks at a time; by default 1 with the engine ``local``, and with ``ray`` as many as
    fit on the cluster. Noise that aliases on the grid (edition ``paper`` with a large J) is refused unless
    ``allow_aliasing``. If another process is making the same file, this is printed (unless ``quiet``) and awaited.
    Existing chunks of another version are an error, unless ``force``: then the file states both versions.
    """
    equation = as_equation(equation)
    spec = DatasetSpec(equation=equation, n=n, seed=seed, chunk=chunk, seen=seen)
    several = [spec] if members == 1 else [spec, replace(spec, members=members)]
    check_where(device, engine)
    check_workers(workers)
    if not all(_is_complete(Path(out) / each.file_name) for each in several):
        check_aliasing(equation, allow_aliasing)
    paths = [_generate(each, Path(out), workers, device, engine, report, quiet, force) for each in several]
    return paths[0]


def _generate(
    identity: DatasetSpec,
    folder: Path,
    workers: int | None,
    device: str,
    engine: str,
    report: Report | None,
    quiet: bool,
    force: bool,
) -> Path:
    """Generate one file, unless it exists."""
    equation = identity.equation
    path = folder / identity.file_name
    parts = parts_folder(path).absolute()  # workers on other machines have another current folder
    if _is_complete(path):
        _check_source(path, equation, force)
        _remove_parts(parts)
        return path
    check_folder(folder)
    check_disk([identity], folder)
    if message := equation.caution():
        warnings.warn(message, NoiseWarning, stacklevel=2)
    with locked(parts, quiet=quiet):
        _remove_partial_files(path)
        if not _is_complete(path, repair=True):  # otherwise the process that had the lock has made it
            with GenerationWatch(parts, canonical_json(identity.to_dict())) as watch:
                _make_chunks(identity, parts, workers, device, engine, report, watch, force)
                assemble(identity, parts, path, device, force)
        shutil.rmtree(parts, ignore_errors=True)
    return path


def _is_complete(path: Path, repair: bool = False) -> bool:
    """Whether the file exists and is not damaged; with ``repair`` a damaged file is renamed."""
    if not path.exists():
        return False
    try:
        open_dataset(path)
    except Damaged:
        if repair:
            set_aside(path)
        return False
    return True


def _remove_parts(parts: Path) -> None:
    """Remove the chunks of a complete file, which remain if a process was killed just before it could remove them."""
    if parts.exists() and not holder_of(parts):
        with suppress(UserError), locked(parts, quiet=True):  # chunks in a folder that cannot be written stay there
            shutil.rmtree(parts, ignore_errors=True)


def _remove_partial_files(path: Path) -> None:
    """Remove the half-written files of a killed process; to be called under the lock."""
    for left in (*path.parent.glob(f".{path.name}.*.tmp"), *parts_folder(path).glob(".*.tmp")):
        if not left.is_dir():
            left.unlink(missing_ok=True)


def _make_chunks(
    identity: DatasetSpec,
    parts: Path,
    workers: int | None,
    device: str,
    engine: str,
    report: Report | None,
    watch: GenerationWatch,
    force: bool,
) -> None:
    """Make the missing chunks."""
    text, todo = canonical_json(identity.to_dict()), []
    for index in range(identity.chunks):
        part = read_part(identity, parts, index)
        if part is None:
            todo.append(index)
        else:
            _check_made(part.made, identity, device, parts, force)
    if report and (found := identity.total - sum(len(identity.rows(i)) for i in todo)):
        report(0, found, 0.0)
    share = GPU_SHARE if engine == "ray" else 1.0 / (workers or 1)
    need = Need(memory_of(identity), share if device_kind(device) == "cuda" else 0.0, place=device)
    units = [_Unit(text, i, str(parts), device) for i in todo]
    with closing(run(make_part, units, workers, engine=engine, needs=need)) as results:
        for index, largest, host in results:
            _check_arrived(_part_path(parts, index), index, host)
            watch.count()
            if report:
                report(len(identity.rows(index)), 0, largest)


def _check_arrived(path: Path, index: int, host: str) -> None:
    """Wait until a chunk of another machine is visible here; a network file system may take a while."""
    patience = time.monotonic() + (PATIENCE if host != socket.gethostname() else 0.0)
    while not path.exists() and path.name not in os.listdir(path.parent):  # listing refreshes a client
        if time.monotonic() >= patience:
            raise UserError(
                f"chunk {index} was written on {host} and is not in {path.parent} here; all machines of a cluster must "
                f"see the same folder: give one on a shared file system with --out"
            )
        time.sleep(0.5)


def _made(identity: DatasetSpec, device: str) -> dict[str, str]:
    """What data of this spec would be made with now."""
    return made_with(device, source(type(identity.equation)))


def _check_source(path: Path, equation: Equation, force: bool) -> None:
    """Refuse a finished file if the user's own file that declares the equation has changed since."""
    changed = changed_source(open_dataset(path).made.get("source"), type(equation))
    if changed and not force:
        raise UserError(f"{path} was made with {changed}; remove it to make it again, or keep it with --force")


def _check_made(made: dict[str, str], identity: DatasetSpec, device: str, parts: Path, force: bool) -> None:
    """Refuse a chunk that was made by other code, or on another kind of device, than this command uses."""
    if not force and (differs := what_differs(made, _made(identity, device))):
        raise UserError(
            f"chunks in {parts} were made with {differs}; remove this folder to make them again, or use --force to "
            f"keep them, which the file will state"
        )


def make_part(unit: _Unit) -> tuple[int, float, str]:
    """Solve one chunk and write it; returns its index, max|u| and the machine."""
    identity = from_json(unit.spec)
    columns = solved_rows(identity, identity.rows(unit.index), unit.device)
    solution = columns[list(identity.columns).index("u")]
    digest = hashlib.sha256()
    with replacing(_part_path(Path(unit.folder), unit.index)) as temporary, temporary.open("wb") as file:
        for column in columns:
            digest.update(column.reshape(-1).data)
            file.write(column.reshape(-1).data)
        made = canonical_json(_made(identity, unit.device)).encode()
        digest.update(made)
        file.write(made + digest.digest() + struct.pack("<I", len(made)))
    return unit.index, float(np.abs(solution).max()), socket.gethostname()


@dataclass(frozen=True)
class StoredChunk:
    """The columns of a chunk, and what it was made with."""

    arrays: tuple[np.ndarray, ...]
    made: dict[str, str]


def read_part(identity: DatasetSpec, folder: Path, index: int) -> StoredChunk | None:
    """A chunk, or None if it is missing or damaged."""
    path = _part_path(folder, index)
    rows = len(identity.rows(index))
    size = rows * identity.sample_bytes
    try:
        if not size + 36 <= path.stat().st_size <= size + 36 + MOST_MADE:
            return None
        raw = path.read_bytes()
    except OSError:  # it does not exist or cannot be read
        return None
    end = len(raw) - 36
    (length,) = struct.unpack("<I", raw[-4:])
    if length != end - size or hashlib.sha256(raw[:end]).digest() != raw[end:-4]:
        return None
    try:
        made = loads(raw[size:end])
    except ValueError:
        return None
    if not isinstance(made, dict):
        return None
    values = np.frombuffer(raw, dtype="<f4", count=size // 4)
    shapes = [(rows, *shape) for shape in identity.columns.values()]
    flat = np.split(values, np.cumsum([math.prod(shape) for shape in shapes])[:-1])
    return StoredChunk(tuple(array.reshape(shape) for array, shape in zip(flat, shapes, strict=True)), made)


def assemble(identity: DatasetSpec, parts: Path, path: Path, device: str, force: bool = False) -> None:
    """Write the chunks in order into the final file, which states all versions and devices that made them."""
    others: dict[str, dict[str, str]] = {}
    with Writer(path, identity.to_dict(), identity.columns, identity.row_group, _made(identity, device)) as writer:
        for index in range(identity.chunks):
            part = read_part(identity, parts, index)
            if part is None:  # damaged since it was written: make it again
                if device_kind(device) == "cuda" and not torch.cuda.is_available():  # it came from a cluster
                    raise UserError(f"chunk {index} of {path.name} is damaged; type the same command again")
                make_part(_Unit(canonical_json(identity.to_dict()), index, str(parts), device))
                part = read_part(identity, parts, index)
            if part is None:
                raise UserError(f"chunk {index} of {path.name} is damaged as soon as it is written; use another disk")
            _check_made(part.made, identity, device, parts, force)
            writer.write(part.arrays)
            others[canonical_json(part.made)] = part.made
        writer.made_with_all([others[key] for key in sorted(others)])


def _part_path(folder: Path, index: int) -> Path:
    return folder / f"chunk-{index:06d}.f4"
