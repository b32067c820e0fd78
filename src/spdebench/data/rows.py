"""The rows of a dataset's file, solved from its seed: u0, dw, u (and dw_seen) of each sample, or u of each member of
the conditional law."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from spdebench.data.identity import DatasetSpec
from spdebench.errors import without_aliasing_warning
from spdebench.noise import PartialNoise
from spdebench.solvers import seen_noise, simulate


def solved_rows(identity: DatasetSpec, rows: range, device: str = "cpu") -> list[np.ndarray]:
    """The columns of these rows as float32 arrays, in the order of `DatasetSpec.columns`."""
    with without_aliasing_warning():
        return [_array(values) for values in _columns(identity, rows, device)]


def _columns(identity: DatasetSpec, rows: range, device: str) -> Iterator[torch.Tensor]:
    """The columns of these rows as tensors, in the order of `DatasetSpec.columns`."""
    eq, seed = identity.equation, identity.seed
    if identity.members > 1:
        samples, members = identity.members_in(rows)
        yield simulate(eq, seed, samples, device=device, partial=PartialNoise(identity.seen or 0, members)).u
        return
    paths = simulate(eq, seed, rows, device=device)
    yield from (paths.u0, paths.dw, paths.u)
    if identity.seen is not None:
        yield seen_noise(eq, seed, rows, identity.seen, device=device)


def _array(values: torch.Tensor) -> np.ndarray:
    return np.ascontiguousarray(values.cpu().numpy(), dtype="<f4")
