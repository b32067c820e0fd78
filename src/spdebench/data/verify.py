"""Check a file against its checksums, and its samples against new solutions from the same seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdebench.data.store import COLUMNS, Dataset, chunk_digest, made_with
from spdebench.errors import UserError, without_aliasing_warning
from spdebench.noise import STREAM
from spdebench.progress import Progress
from spdebench.solvers import simulate

TOLERANCE = 1e-4
"""Largest difference, relative to max|u|, that different hardware or library versions may cause."""


@dataclass(frozen=True)
class Verification:
    """The result of a verification."""

    chunks: int  # chunks whose checksums were compared
    solved: int  # samples solved again
    identical: int  # samples among these that are equal to the last bit
    largest: float  # largest difference, relative to the largest value of its column
    same_make: bool  # whether versions and device are those that made the file

    @property
    def good(self) -> bool:
        return self.solved == 0 or self.largest <= TOLERANCE


def verify(
    dataset: Dataset, *, everything: bool = False, device: str = "cpu", progress: bool | None = None
) -> Verification:
    """Compare all checksums, then solve the first and the last chunk (or all) from the seed and compare.

    ``progress=False`` shows no progress bar; by default there is one on a terminal.
    """
    count = check_sums(dataset)
    same = dataset.made == made_with(device)
    if dataset.imported:
        return Verification(count, 0, 0, 0.0, same)
    identity = dataset.spec
    if identity.stream != STREAM:
        raise UserError(f"the noise of {dataset.path} is of stream '{identity.stream}'; this version draws '{STREAM}'")
    chosen = range(identity.chunks) if everything else sorted({0, identity.chunks - 1})
    chunks = [identity.rows(index) for index in chosen]
    solved, identical, largest = sum(map(len, chunks)), 0, 0.0
    with Progress(solved, "samples solved again", enabled=progress) as bar:
        for rows in chunks:
            equal, difference = _solve_again(dataset, rows, device)
            identical, largest = identical + equal, max(largest, difference)
            bar.advance(len(rows))
    return Verification(count, solved, identical, largest, same)


def _solve_again(dataset: Dataset, rows: range, device: str) -> tuple[int, float]:
    """(samples equal to the bit, largest difference relative to the largest value of its column)."""
    with without_aliasing_warning():
        paths = simulate(dataset.equation, dataset.spec.seed, rows, device=device)
    equal, largest = np.ones(len(rows), dtype=bool), 0.0
    for column in COLUMNS:
        stored = dataset.read(column, rows.start, rows.stop)
        fresh = getattr(paths, column).cpu().numpy()
        equal &= (stored == fresh).reshape(len(rows), -1).all(1)
        scale = float(np.abs(stored).max()) or 1.0
        largest = max(largest, float(np.abs(stored - fresh).max()) / scale)
    return int(equal.sum()), largest


def check_sums(dataset: Dataset) -> int:
    """Compare the checksum of every chunk; returns their number."""
    start = 0
    for index, (rows, expected) in enumerate(dataset.chunk_digests):
        arrays = [dataset.read(column, start, start + rows) for column in COLUMNS]
        if chunk_digest(arrays) != expected:
            raise UserError(
                f"{dataset.path} is damaged: chunk {index} does not match its checksum; make or fetch it again"
            )
        start += rows
    if start != len(dataset):
        raise UserError(f"{dataset.path} is damaged: it has {len(dataset)} rows and checksums for {start}")
    return len(dataset.chunk_digests)
