"""Check a file against its checksums, and its samples against new solutions from the same seed."""

from __future__ import annotations

import math
import os
import random
from dataclasses import dataclass

import numpy as np

from spdebench.data.rows import solved_rows
from spdebench.data.store import Dataset, open_dataset
from spdebench.data.writer import chunk_digest
from spdebench.errors import Damaged, UserError
from spdebench.noise import STREAM
from spdebench.progress import Progress
from spdebench.registry import source
from spdebench.version import made_with

TOLERANCE = 1e-6
"""Largest difference, relative to the largest value of its column, that another processor or other versions may cause.

Solvers compute in float64, and no equation of the package amplifies a relative change of its noise by 4e-16 beyond
1e-14. What remains is the rounding to float32, at most 6e-8.
"""
SHARE = 0.25
"""The fraction of the chunks (at least two) that are solved again by default."""


@dataclass(frozen=True)
class Verification:
    """The result of a verification."""

    samples: int  # samples of the file
    chunks: int  # chunks whose checksums were compared
    non_finite: int  # samples with NaN or infinity; an imported file may have as many as it states
    solved: int  # samples solved again
    identical: int  # samples among these that are equal to the last bit
    largest: float  # largest difference, relative to the largest value of its column; infinite for NaN
    same_versions: bool  # whether versions and device are those that made the file
    expected_non_finite: int = 0

    @property
    def good(self) -> bool:
        """No unexpected NaN; the same bits if versions and device are the same, else differences within `TOLERANCE`."""
        if self.non_finite != self.expected_non_finite:
            return False
        return self.identical == self.solved or (not self.same_versions and self.largest <= TOLERANCE)

    @property
    def coverage(self) -> float:
        """The fraction of the samples that was solved again: the probability that a change in one chunk is found."""
        return self.solved / self.samples


def verify(
    dataset: Dataset | str | os.PathLike[str],
    *,
    everything: bool = False,
    device: str = "cpu",
    progress: bool | None = None,
    draw: int | None = None,
) -> Verification:
    """Compare all checksums, then solve some chunks, drawn at random, or all from the seed and compare.

    ``draw`` is the seed of the draw; by default the system draws, so that nobody knows which chunks are compared.
    ``progress=False`` shows no progress bar; by default there is one on a terminal.
    """
    dataset = dataset if isinstance(dataset, Dataset) else open_dataset(dataset)
    count, non_finite = check_sums(dataset)
    same = dataset.made == made_with(device, "" if dataset.imported else source(type(dataset.spec.equation)))
    if dataset.imported:
        stated = dataset.identity["published"].get("non_finite_samples", 0)
        return Verification(len(dataset), count, non_finite, 0, 0, 0.0, same, stated if isinstance(stated, int) else 0)
    identity = dataset.spec
    if identity.stream != STREAM:
        raise UserError(
            f"the noise of {dataset.path} was drawn from the random stream '{identity.stream}'; this version uses "
            f"'{STREAM}'"
        )
    wanted = identity.chunks if everything else min(identity.chunks, max(2, math.ceil(SHARE * identity.chunks)))
    generator = random.SystemRandom() if draw is None else random.Random(draw)
    chunks = [identity.rows(index) for index in sorted(generator.sample(range(identity.chunks), wanted))]
    solved, identical, largest = sum(map(len, chunks)), 0, 0.0
    with Progress(solved, "samples solved again", enabled=progress) as bar:
        for rows in chunks:
            equal, difference = _solve_again(dataset, rows, device)
            identical, largest = identical + equal, max(largest, difference)
            bar.advance(len(rows))
    return Verification(len(dataset), count, non_finite, solved, identical, largest, same)


def _solve_again(dataset: Dataset, rows: range, device: str) -> tuple[int, float]:
    """(samples equal to the bit, largest difference relative to the largest value of its column)."""
    fresh_columns = solved_rows(dataset.spec, rows, device)
    equal, largest = np.ones(len(rows), dtype=bool), 0.0
    for column, fresh in zip(dataset.shapes, fresh_columns, strict=True):
        stored = dataset.read(column, rows.start, rows.stop)
        same_bits = stored.view(np.uint32) == fresh.view(np.uint32)
        equal &= same_bits.reshape(len(rows), -1).all(1)
        with np.errstate(invalid="ignore", over="ignore"):
            difference = float(np.abs(stored - fresh).max()) / (float(np.abs(fresh).max()) or 1.0)
        largest = max(largest, difference if math.isfinite(difference) else math.inf)
    return int(equal.sum()), largest


def check_sums(dataset: Dataset) -> tuple[int, int]:
    """Compare the checksum of every chunk; returns their number, and the number of samples with NaN or infinity."""
    start = non_finite = 0
    for index, (rows, expected) in enumerate(dataset.chunk_digests):
        arrays = [dataset.read(column, start, start + rows) for column in dataset.shapes]
        if chunk_digest(arrays) != expected:
            raise Damaged(
                f"{dataset.path} is damaged: chunk {index} does not match its checksum; make or fetch it again"
            )
        finite = [np.isfinite(array).reshape(len(array), -1).all(1) for array in arrays]
        non_finite += int((~np.logical_and.reduce(finite)).sum())
        start += rows
    if start != len(dataset):
        raise Damaged(f"{dataset.path} is damaged: it has {len(dataset)} rows and checksums for {start}")
    return len(dataset.chunk_digests), non_finite
