"""The split ``blocks``: the part of a sample is a function of the split's seed and of the sample's number.

Samples 20b .. 20b+19 are block b. SHAKE-256 of the text ``spdebench split SEED b`` gives 20 numbers of 64 bits
(little-endian); the samples of the block in the order of these numbers are 14 of train, 3 of val, 3 of test.
"""

from __future__ import annotations

import hashlib

import numpy as np

BLOCK = {"train": 14, "val": 3, "test": 3}
"""The number of samples of each part in a block of 20."""
SPLIT_SEED = 3407
"""The default seed of splits; members of a conditional law are made for the test part of this seed."""


def block_rows(seed: int, n: int) -> dict[str, np.ndarray]:
    """The rows of each part, sorted, if there are n samples."""
    size = sum(BLOCK.values())
    orders = [np.empty(0, dtype=np.int64)]
    for block in range(-(-n // size)):
        digest = hashlib.shake_256(f"spdebench split {seed} {block}".encode()).digest(8 * size)
        orders.append(size * block + np.argsort(np.frombuffer(digest, dtype="<u8"), kind="stable"))
    order = np.concatenate(orders).reshape(-1, size)
    kept = np.split(order, np.cumsum([*BLOCK.values()])[:-1], axis=1)
    return {name: np.sort(rows[rows < n]) for name, rows in zip(BLOCK, kept, strict=True)}
