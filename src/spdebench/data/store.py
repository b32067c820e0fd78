"""The native Parquet file: one row per sample, columns u0, dw, u (float32, flattened), and dw_seen if only a part of
the noise is seen; or one row per member of a law, column u. Everything else is in the file's metadata.

A file in the layout of the hub (`spdebench.data.publish`) has the same rows and metadata; its columns are nested lists,
and the columns in front of them number the rows (`LABELS`).

Metadata keys (all UTF-8): ``spdebench.spec`` canonical JSON of the dataset's identity (or of an import's origin),
``spdebench.shapes`` the shape of each column, ``spdebench.chunks`` SHA-256 of each chunk's bytes, ``spdebench.made``
versions and device, ``spdebench.seal`` SHA-256 over the other four. There are no time stamps, so that the same spec
gives the same bytes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spdebench import spec
from spdebench.data.identity import DatasetSpec, from_dict
from spdebench.data.writer import METADATA_KEYS, seal
from spdebench.display import Displayed, TableRows, facts
from spdebench.engines import check_free_memory
from spdebench.equations import Equation
from spdebench.errors import Damaged, UnknownName, UserError, first_line
from spdebench.grids import Grid

LARGEST_GROUP = 64
"""The most rows of a row group, which a reader decodes at once."""
DENSEST = 1 << 16
"""Files that claim a higher compression ratio than this are refused."""
LABELS = {"sample": pa.int64(), "part": pa.string(), "member": pa.int64()}
"""Columns of the hub's layout that no reader of ours decodes: number of the sample, its part, number of the member."""


def _file_inside(folder: Path) -> str:
    """What to give instead of a folder; empty if it is none."""
    if not folder.is_dir():
        return ""
    found = min(folder.glob("*.parquet"), default=None, key=lambda path: (len(path.name), path.name))
    return f" is a folder; give one of its files, such as {found}" if found else " is a folder, without a .parquet file"


class ColumnFile:
    """A file that `Writer` has written, read lazily: identity, shapes of columns and checksums of chunks. The subclass
    defines which columns and how many rows it must have.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise UserError(f"no such dataset: {self.path}{_file_inside(self.path)}")
        try:
            self._file = pq.ParquetFile(self.path, page_checksum_verification=True)
            raw = {k.decode(): v.decode() for k, v in (self._file.metadata.metadata or {}).items()}
        except MemoryError:
            raise UserError(f"there is too little free memory to open {self.path}; close other programs") from None
        except (pa.ArrowException, OSError, UnicodeDecodeError, ValueError) as error:
            raise Damaged(
                f"{self.path} is not a whole Parquet file ({first_line(error)}); make or fetch it again"
            ) from None
        if "spdebench.seal" not in raw:
            raise UserError(
                f"{self.path} is not a native spdebench file; bring published files in with 'spdebench data import'"
            )
        texts = {key: raw.get(f"spdebench.{key}", "") for key in METADATA_KEYS}
        if seal(texts) != raw["spdebench.seal"]:
            raise Damaged(f"{self.path} is damaged: its metadata do not match their seal; make or fetch it again")
        try:
            self.metadata = {f"spdebench.{key}": raw[f"spdebench.{key}"] for key in (*METADATA_KEYS, "seal")}
            self.identity, shapes, chunks, self.made = (spec.loads(texts[key]) for key in METADATA_KEYS)
            self.chunk_digests: list[tuple[int, str]] = [(int(r), str(d)) for r, d in chunks]
            self.shapes: dict[str, tuple[int, ...]] = {k: tuple(map(int, v)) for k, v in shapes.items()}
            wanted = self._declared_columns()
        except UnknownName as error:
            raise UserError(f"{self.path} {error.needed}") from None
        except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError) as error:
            line = f"{self.path} has no valid metadata ({first_line(error)}); make or fetch it again"
            raise UserError(line) from None
        check_footer(self._file, self.path, wanted, self.shapes)
        self.shapes = wanted  # in the order of the columns
        rows = sum(count for count, _ in self.chunk_digests)
        if len(self) != rows or self._declared_rows() not in (None, rows):
            raise Damaged(f"{self.path} is damaged: it has {len(self)} rows and checksums for {rows}")

    def _declared_columns(self) -> dict[str, tuple[int, ...]]:
        """The columns that the file must have according to its identity; raises any error if the identity is wrong."""
        raise NotImplementedError

    def _declared_rows(self) -> int | None:
        """The number of rows that the file must have, if its identity states it."""
        return None

    def __len__(self) -> int:
        return int(self._file.metadata.num_rows)

    def read(self, column: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Rows start..stop of a column; only the row groups that contain them are read."""
        stop = len(self) if stop is None else min(stop, len(self))
        out = self.empty_rows(column, max(0, stop - start))
        for first, rows in self.row_groups(column, start, stop):
            low, high = max(start, first), min(stop, first + len(rows))
            out[low - start : high - start] = rows[low - first : high - first]
        return out

    def check_column(self, column: str) -> None:
        """Raise a one-line error unless the file has this column."""
        if column not in self.shapes:
            raise UserError(f"{self.path} has no column {column}; it has {', '.join(self.shapes)}")

    def empty_rows(self, column: str, rows: int) -> np.ndarray:
        """An empty array for this number of rows of a column; raises a one-line error if there is too little memory."""
        self.check_column(column)
        shape = (rows, *self.shapes[column])
        check_free_memory(4 * math.prod(shape), f"{self.path}: {rows} rows of {column}", "read fewer rows")
        return np.empty(shape, dtype=np.float32)

    def row_groups(self, column: str, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """(first row, values) of each row group with rows start..stop, in order; the values are read-only."""
        self.check_column(column)
        stop, first = len(self) if stop is None else stop, 0
        for index in range(self._file.metadata.num_row_groups):
            count = self._file.metadata.row_group(index).num_rows
            if first < stop and first + count > start:
                try:
                    table = self._file.read_row_group(index, columns=[column])
                    flat = table.column(column).combine_chunks()
                    while pa.types.is_fixed_size_list(flat.type):
                        flat = flat.flatten()
                    values = flat.to_numpy(zero_copy_only=False).reshape(count, *self.shapes[column])
                except MemoryError:
                    raise UserError(f"there is too little free memory to read {self.path}; read fewer rows") from None
                except (pa.ArrowException, OSError, ValueError) as error:
                    raise Damaged(
                        f"{self.path} is damaged in row group {index} ({first_line(error)}); make or fetch it again"
                    ) from None
                yield first, values
            first += count


class Dataset(ColumnFile, Displayed):
    """A native file, read lazily: `u0`, `dw`, `xi`, `u` as float32 arrays (N T X..), `grid`, `times`, `spec`."""

    def _declared_rows(self) -> int | None:
        return None if self.imported else self.spec.total

    def _declared_columns(self) -> dict[str, tuple[int, ...]]:
        """The columns that the identity states; the identity of an imported file is checked here as well."""
        if not isinstance(self.made, dict):
            raise TypeError("made is no object")
        if not self.imported:
            return self.spec.columns
        if not isinstance(self.identity["published"]["file"], str):
            raise TypeError("the origin has no file")
        times = self.identity["times"]
        if not all(isinstance(t, int | float) for t in times) or len(times) < 2 or not times[1] > times[0]:
            raise ValueError("the times do not rise")
        path = (len(times), *self.grid.points)
        return {"u0": path[1:], "dw": path, "u": path}

    def check_column(self, column: str) -> None:
        if column not in self.shapes and not self.imported and self.spec.members > 1:
            raise UserError(
                f"{self.path} holds members of a law, of which only u is stored; give the file of samples next to it"
            )
        super().check_column(column)

    @cached_property
    def spec(self) -> DatasetSpec:
        """The spec of the dataset; an imported file has none."""
        if "published" in self.identity:
            raise UserError(f"{self.path} was imported: it has an origin, but no seed and no spec")
        return from_dict(self.identity)

    @property
    def equation(self) -> Equation:
        """The equation of the samples; an imported file has none."""
        return self.spec.equation

    @property
    def imported(self) -> bool:
        return "published" in self.identity

    def overview(self) -> tuple[str, TableRows]:
        known = None if self.imported else self.equation
        return f"Dataset {self.path}", facts(
            equation=f"{known.title}: {known.formula}" if known else "imported",
            edition=known and known.edition,
            noise=known and f"{known.noise_label}, {known.basis}, J={known.truncation}, sigma={known.sigma:g}",
            seed=None if self.imported else self.spec.seed,
            samples=len(self),
            u="x".join(map(str, (len(self), *self.shapes["u"]))) + " (N T X..)",
        )

    @property
    def grid(self) -> Grid:
        if self.imported:
            return Grid.from_dict(self.identity["grid"])
        return self.equation.grid

    @property
    def times(self) -> np.ndarray:
        """t_0..t_T."""
        return np.asarray(self.identity["times"]) if self.imported else self.equation.times.numpy()

    @cached_property
    def u(self) -> np.ndarray:
        """The solution, all frames: (N, T, X..)."""
        return self.read("u")

    @cached_property
    def dw(self) -> np.ndarray:
        """Increments of the Wiener process, dw[:,0] = 0: (N, T, X..)."""
        return self.read("dw")

    @cached_property
    def u0(self) -> np.ndarray:
        """The initial data: (N, X..)."""
        return self.read("u0")

    @cached_property
    def dw_seen(self) -> np.ndarray:
        """Increments of the noise modes that a model may see: (N, T, X..); only in files made with ``seen``."""
        if "dw_seen" not in self.shapes:
            raise UserError(f"{self.path} holds no dw_seen; generate it with seen=K")
        return self.read("dw_seen")

    @property
    def members_files(self) -> list[Dataset]:
        """The files of members of this dataset's law next to it, by their number of members."""
        others = map(open_dataset, self.path.parent.glob(f"{self.path.stem}-members*.parquet"))
        found = [o for o in others if not o.imported and o.spec.members > 1 and o.spec.samples_file == self.spec]
        return sorted(found, key=lambda other: other.spec.members)

    @cached_property
    def members_file(self) -> Dataset:
        """The file of the members of this dataset's law, next to it; the one with the most members."""
        if not (found := self.members_files):
            raise UserError(f"no file of members is next to {self.path}; generate it with seen=K members=64")
        return found[-1]

    def members(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """u of all members for inputs start..stop of the test part, (inputs, M, T, X..); member 0 is the sample."""
        file = self.members_file
        inputs, others = range(len(file.spec.inputs))[start:stop], file.spec.members - 1
        shape = (len(inputs), file.spec.members, *self.shapes["u"])
        what = f"{file.path}: {file.spec.members} members for each of {len(inputs)} inputs"
        check_free_memory(4 * math.prod(shape), what, "read fewer inputs at a time with members(start, stop)")
        out = np.empty(shape, dtype=np.float32)
        for k, sample in enumerate(file.spec.inputs[start:stop]):
            out[k, :1] = self.read("u", sample, sample + 1)
        first, end = inputs.start * others, inputs.stop * others
        for begin, values in file.row_groups("u", first, end):
            rows = np.arange(max(first, begin), min(end, begin + len(values)))
            out[rows // others - inputs.start, 1 + rows % others] = values[rows - begin]
        return out

    @property
    def xi(self) -> np.ndarray:
        """xi = dw/dt, the noise that is the input of the tasks: (N, T, X..)."""
        return self.dw / np.float32(self.times[1] - self.times[0])


def check_footer(
    file: pq.ParquetFile, path: Path, wanted: dict[str, tuple[int, ...]], shapes: dict[str, tuple[int, ...]]
) -> None:
    """Raise an error if columns, row groups or sizes differ from what the metadata state; nothing is decoded."""
    if shapes != wanted:
        raise Damaged(f"{path} is damaged: its columns have the shapes {shapes}, its spec {wanted}")
    types = {field.name: field.type for field in file.schema_arrow}
    flat = {column: pa.list_(pa.float32(), math.prod(shape)) for column, shape in shapes.items()}
    nested = {name: kind for name, kind in LABELS.items() if name in types} | {
        column: nested_type(shape) for column, shape in shapes.items()
    }
    if types not in (flat, nested) or len(file.schema_arrow) != len(types):
        raise Damaged(f"{path} is damaged: its columns are not {', '.join(shapes)} in float32 of the shapes it states")
    groups = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
    if any(not 1 <= rows <= LARGEST_GROUP for rows in groups) or sum(groups) != file.metadata.num_rows:
        raise Damaged(f"{path} is damaged: its row groups do not add up to {file.metadata.num_rows} rows")
    size = 4 * file.metadata.num_rows * sum(math.prod(shape) for shape in shapes.values())
    if size > DENSEST * path.stat().st_size:
        raise Damaged(f"{path} is damaged: {size:.3g} bytes of numbers cannot lie in {path.stat().st_size}")


def nested_type(shape: Sequence[int]) -> pa.DataType:
    """float32 lists in lists, with the sizes of ``shape``."""
    kind = pa.float32()
    for size in reversed(shape):
        kind = pa.list_(kind, size)
    return kind


def open_dataset(path: str | os.PathLike[str]) -> Dataset:
    """Open a native file; only its metadata are read at first."""
    return Dataset(path)
