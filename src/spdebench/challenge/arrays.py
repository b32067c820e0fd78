"""Parquet files of a challenge (inputs without u, and predictions), in the format of dataset files."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spdebench.data.store import LARGEST_GROUP, ColumnFile
from spdebench.data.writer import Writer
from spdebench.errors import UserError
from spdebench.version import made_with

MOST_VALUES = 1 << 30
"""The most numbers in one row."""


class ArraysFile(ColumnFile):
    """A file with the columns and shapes that it states itself; `check_file` compares them with the expected ones."""

    def _declared_columns(self) -> dict[str, tuple[int, ...]]:
        if not isinstance(self.identity, dict):
            raise TypeError("the identity is no object")
        for name, shape in self.shapes.items():
            if not shape or min(shape) < 1 or math.prod(shape) > MOST_VALUES:
                raise ValueError(f"{name} has the shape {shape}")
        return self.shapes


def write_arrays(path: Path, identity: Mapping[str, Any], columns: Mapping[str, np.ndarray]) -> None:
    """Write columns, arrays with the same number of rows; no partial file appears."""
    shapes = {name: array.shape[1:] for name, array in columns.items()}
    size = 4 * sum(math.prod(shape) for shape in shapes.values())
    group = max(1, min(LARGEST_GROUP, (2 << 20) // size))
    with Writer(path, dict(identity), shapes, group, made_with("cpu")) as writer:
        writer.write(list(columns.values()))


def check_file(
    file: ArraysFile, identity: Mapping[str, Any], columns: Mapping[str, tuple[int, ...]], rows: int
) -> None:
    """Raise an error unless a file states this identity and has these columns and rows; nothing is decoded."""
    for key, expected in identity.items():
        if (found := file.identity.get(key)) != expected:
            raise UserError(f"{file.path} has {key} {_short(found)}, expected {_short(expected)}")
    if file.shapes != dict(columns) or len(file) != rows:
        found, wanted = (
            ", ".join(f"{name} {(count, *shape)}" for name, shape in shapes.items())
            for count, shapes in ((len(file), file.shapes), (rows, columns))
        )
        raise UserError(f"{file.path} has {found}; expected {wanted}")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 24 else f"{text[:12]}..."


def sha256_of(path: Path) -> str:
    """SHA-256 of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror or error})") from None
