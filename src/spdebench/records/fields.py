"""Fields u (T X..) in a record: whole numbers of 16 bits times a scale, compressed and written as text.

Five frames on 64 x 64 points take about 50 kB.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from spdebench.errors import UserError

LARGEST = 2**15 - 1
NOT_FINITE = -(2**15)
"""The whole number that stands for a value that is not finite."""
MOST_VALUES = 1 << 20
"""The most values of the fields on one grid."""
_NUMBER = np.dtype("<i2")


@dataclass(frozen=True)
class PackedFields:
    """u = scale k with whole numbers k = -32767..32767; k = -32768 stands for a value that is not finite.

    ``shape`` is that of u (T X..). ``numbers`` is k in C order, two bytes each with the lower one first, compressed by
    zlib and written in base64.
    """

    shape: tuple[int, ...]
    scale: float
    numbers: str = field(repr=False)

    def __post_init__(self) -> None:
        if not 2 <= len(self.shape) <= 4 or min(self.shape) < 1 or math.prod(self.shape) > MOST_VALUES:
            raise UserError(f"fields must have a shape T X.. of at most {MOST_VALUES} values")
        if not (self.scale > 0 and math.isfinite(LARGEST * self.scale)):
            raise UserError(f"fields must have a positive and finite scale, got {self.scale}")
        self._whole_numbers()  # refuses a damaged text

    @classmethod
    def of(cls, u: NDArray[np.floating[Any]]) -> Self:
        """The fields u (T X..), each value rounded to a multiple of (largest absolute value) / 32767."""
        values = u.astype(np.float64)
        finite = np.isfinite(values)
        known = np.where(finite, values, 0.0)
        scale = float(np.abs(known).max()) / LARGEST or 1.0
        k = np.where(finite, np.rint(known / scale), NOT_FINITE).astype(_NUMBER)
        return cls(values.shape, scale, base64.b64encode(zlib.compress(k.tobytes(), 9)).decode())

    def values(self) -> NDArray[np.float64]:
        """u (T X..); NaN where it was not finite."""
        k = self._whole_numbers()
        return np.where(k == NOT_FINITE, np.nan, self.scale * k)

    def _whole_numbers(self) -> NDArray[np.int16]:
        """k (T X..). No more is decompressed than the shape allows."""
        size = _NUMBER.itemsize * math.prod(self.shape)
        unpacker = zlib.decompressobj()
        try:
            content = unpacker.decompress(base64.b64decode(self.numbers, validate=True), size + 1)
        except (ValueError, zlib.error):
            raise UserError("fields: numbers must be zlib data in base64; they are damaged") from None
        if len(content) != size or not unpacker.eof or unpacker.unused_data:
            raise UserError(f"fields: numbers must hold {size} bytes for the shape {self.shape}; they hold others")
        return np.frombuffer(content, _NUMBER).reshape(self.shape)


@dataclass(frozen=True)
class FieldData:
    """One sample as predicted at some frames, by grid ("16 x 16"); ``row`` is the number of the sample in its dataset.

    The true fields are not stored: they are solved again from the seed of the dataset.
    """

    row: int
    frames: tuple[int, ...]
    times: tuple[float, ...]
    grids: Mapping[str, PackedFields]

    def __post_init__(self) -> None:
        counts = {len(self.times), *(packed.shape[0] for packed in self.grids.values())}
        if not self.frames or not self.grids or counts != {len(self.frames)}:
            raise UserError("fields must have, on at least one grid, one time and one field per frame")
