"""The division of samples into the parts train, val and test: the rule ``blocks``, and the rule of weights ``A:B:C``.

blocks   Of each block of 20 samples 14, 3 and 3 belong to train, val and test (`data.blocks`). The part of a sample is
         a function of the split's seed and the sample's number. It does not depend on the number of samples n, so
         that files of one seed and different n never mix their parts. Sizes are exactly 70, 15 and 15 percent if n is
         a multiple of 20.
A:B:C    One random permutation of all rows of the file is cut in proportion to the weights; with n below the number of
         rows the ends of the permutation are used, so that a smaller n gives a subset of a larger one. The part of a
         sample depends on the number of rows of the file: in a file of the same seed and another n, samples that were
         trained on belong to the test part. `rows_in` leaves these out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spdebench.data import Dataset
from spdebench.data.blocks import BLOCK, block_rows
from spdebench.errors import UserError

PARTS = ("train", "val", "test")
LEAST_SCORED = 3
"""Minimum number of samples for scoring an ensemble."""
BLOCKS = "blocks"

Rows = dict[str, np.ndarray]
"""The rows of each part, sorted."""


def weights(split: str) -> tuple[int, int, int]:
    """The weights of train, val and test; 14, 3 and 3 for ``blocks``."""
    if split == BLOCKS:
        return BLOCK["train"], BLOCK["val"], BLOCK["test"]
    try:
        a, b, c = (int(word) for word in split.split(":"))
        if min(a, b, c) < 0 or a < 1:
            raise ValueError
    except ValueError:
        raise UserError(f"task: split must be '{BLOCKS}' or three weights such as 70:15:15, got '{split}'") from None
    return a, b, c


def rows_of(split: str, seed: int, n: int, total: int) -> Rows:
    """The rows of each part if n of the ``total`` samples are used."""
    rows = _divided(split, seed, n, total)
    if not len(rows["train"]):
        raise UserError(f"task: {n} samples with split={split} leave none for training; {working_split(n)}")
    return rows


def _divided(split: str, seed: int, n: int, total: int) -> Rows:
    """The rows of each part, which may be empty, by the rule ``split``."""
    return block_rows(seed, n) if split == BLOCKS else _by_weights(weights(split), seed, n, total)


def _by_weights(chosen: tuple[int, int, int], seed: int, n: int, total: int) -> Rows:
    """The rows of each part by the rule of weights."""
    train, val = (n * w // sum(chosen) for w in chosen[:2])
    order = np.random.default_rng(seed).permutation(total)
    test = n - train - val if chosen[2] else 0
    kept = order[:train], order[train : train + val], order[total - test :]
    return dict(zip(PARTS, (np.sort(rows) for rows in kept), strict=True))


def working_split(n: int) -> str:
    """Advice for the user if a part is too small: a split of n samples that works, or how many samples are needed."""
    val, test = max(1, round(0.15 * n)), max(LEAST_SCORED, round(0.15 * n))
    if n - val - test < 1:
        need = LEAST_SCORED + 2
        return f"at least {need} samples are needed (1 to train, 1 to validate, {LEAST_SCORED} to test), there are {n}"
    return f"try split={n - val - test}:{val}:{test}"


# --- other files --------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class RowsOfFile:
    """The rows of a file in each part of a task, and those that a model of the task has seen.

    ``seen`` are rows with the noise of a sample that is used for training or validation; none of them is in the test
    part. ``alike`` says whether the task's split gives the file a test part of its own; otherwise only the rows of the
    training data's test part are known to be unseen.
    """

    parts: Rows
    seen: np.ndarray
    alike: bool


def rows_in(dataset: Dataset, split: str, seed: int, n: int, trained_on: Iterable[Mapping[str, Any]]) -> RowsOfFile:
    """The parts of any file in a task whose datasets have the identities ``trained_on`` and use n samples (0: all).

    Noise and initial data are functions of the dataset's seed and of the sample's number. Row i of a file with the seed
    of the training data therefore has the noise of their row i, also with another J, sigma, edition, grid or n.
    """
    total = len(dataset)
    sources = _same_noise(dataset, trained_on)
    if not sources:
        return RowsOfFile(_divided(split, seed, min(n or total, total), total), np.empty(0, dtype=np.int64), True)
    parts = {name: np.empty(0, dtype=np.int64) for name in PARTS}
    for source in sources:
        for name, rows in _divided(split, seed, n or source, source).items():
            parts[name] = np.union1d(parts[name], rows[rows < total])
    if split == BLOCKS:
        parts["test"] = block_rows(seed, min(n or total, total))["test"]
    parts["val"] = np.setdiff1d(parts["val"], parts["train"])
    seen = np.union1d(parts["train"], parts["val"])
    parts["test"] = np.setdiff1d(parts["test"], seen)
    return RowsOfFile(parts, seen, split == BLOCKS or all(source == total for source in sources))


def _same_noise(dataset: Dataset, trained_on: Iterable[Mapping[str, Any]]) -> list[int]:
    """The sizes n of those of the datasets ``trained_on`` that have the same noise as this file."""
    if dataset.imported:
        return [len(dataset) for each in trained_on if each == dataset.identity]
    return [int(each["n"]) for each in trained_on if "published" not in each and each["seed"] == dataset.spec.seed]
