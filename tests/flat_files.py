"""All of a file of the published flat layout at once; `import_published` goes through it in blocks."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from spdebench.data.flat import Layout, Source


class Flat(NamedTuple):
    """The arrays of a flat file as (N, T, X, ..), without padding."""

    coordinates: dict[str, np.ndarray]
    W: np.ndarray
    sol: np.ndarray
    eps: float | None


def read_flat(path: Path, layout: Layout) -> Flat:
    """W in float64 and sol in float32."""
    source = Source(path)
    coordinates = source.coordinates(layout)
    _, sizes = source.shape(layout, coordinates)
    blocks = [
        (layout.trim(w, layout.w_padding).astype(np.float64), layout.trim(sol, layout.sol_padding).astype(np.float32))
        for w, sol in source.blocks(layout, sizes)
    ]
    w, sol = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    return Flat(coordinates, w, sol, source.eps())
