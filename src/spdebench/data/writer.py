"""Writes the native Parquet file, whose layout `spdebench.data.store` describes."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from spdebench import spec
from spdebench.data.splice import Splicer
from spdebench.files import replacing

METADATA_KEYS = ("spec", "shapes", "chunks", "made")
"""The metadata keys over which the seal is computed, without their prefix ``spdebench.``."""


def chunk_digest(arrays: Sequence[np.ndarray]) -> str:
    """SHA-256 of the float32 bytes of u0, dw, u of a chunk, in this order."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array, dtype="<f4").reshape(-1).data)
    return digest.hexdigest()


class Writer:
    """A context that writes chunks into a temporary file and renames it at the end, so that no partial file appears.

    Row groups are encoded by ``threads`` threads (by default as many as torch has) while the next chunk is made, and
    written in order: the bytes do not depend on the number of threads.
    """

    def __init__(
        self,
        path: Path,
        identity: dict[str, Any],
        shapes: dict[str, tuple[int, ...]],
        row_group: int,
        made: Mapping[str, Any],
        threads: int = 0,
    ) -> None:
        self.path, self._shapes, self._row_group = path, shapes, row_group
        self._threads = threads or torch.get_num_threads()
        self._texts = {
            "spec": spec.canonical_json(identity),
            "shapes": spec.canonical_json({k: list(v) for k, v in shapes.items()}),
            "made": spec.canonical_json(dict(made)),
        }
        self._schema = pa.schema([(c, pa.list_(pa.float32(), math.prod(shapes[c]))) for c in shapes])
        self._digests: list[tuple[int, Future[str]]] = []
        self._groups: list[Future[memoryview]] = []

    def __enter__(self) -> Writer:
        with contextlib.ExitStack() as stack:
            temporary = stack.enter_context(replacing(self.path))
            self._splicer = Splicer(stack.enter_context(temporary.open("wb")))
            self._pool = ThreadPoolExecutor(self._threads)
            stack.callback(self._pool.shutdown, cancel_futures=True)
            self._opened = stack.pop_all()
        return self

    def write(self, arrays: Sequence[np.ndarray]) -> None:
        """Append one chunk: u0 (n X..), dw and u (n T X..), which must not change afterwards."""
        rows, earlier = len(arrays[0]), self._groups
        self._digests.append((rows, self._pool.submit(chunk_digest, arrays)))
        self._groups = [
            self._pool.submit(self._encoded, [a[start : start + self._row_group] for a in arrays])
            for start in range(0, rows, self._row_group)
        ]
        self._append(earlier)

    def made_with_all(self, made: Sequence[Mapping[str, Any]]) -> None:
        """Set the metadata ``made``: the versions and device that made the chunks, or all of several such sets."""
        text = made[0] if len(made) == 1 else {**made[0], "also": [dict(other) for other in made[1:]]}
        self._texts["made"] = spec.canonical_json(dict(text))

    def _append(self, groups: list[Future[memoryview]]) -> None:
        """Write row groups to the file as soon as they are encoded."""
        while groups:
            self._splicer.append(groups.pop(0).result())

    def _encoded(self, arrays: Sequence[np.ndarray] = (), metadata: dict[str, str] | None = None) -> memoryview:
        """The bytes of a Parquet file with one row group, or with none but with metadata."""
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(
            sink,
            self._schema,
            compression="zstd",
            compression_level=3,
            use_dictionary=False,
            use_byte_stream_split=[f"{c}.list.element" for c in self._shapes],
            write_statistics=False,
            write_page_checksum=True,
        ) as writer:
            if arrays:
                writer.write_table(self._table(arrays), row_group_size=self._row_group)
            if metadata:
                writer.add_key_value_metadata(metadata)
        return memoryview(sink.getvalue()).cast("B")

    def _table(self, arrays: Sequence[np.ndarray]) -> pa.Table:
        """The rows as an Arrow table of flat lists."""
        columns = []
        for name, array in zip(self._shapes, arrays, strict=True):
            flat = pa.array(np.ascontiguousarray(array, dtype=np.float32).reshape(-1))
            columns.append(pa.FixedSizeListArray.from_arrays(flat, math.prod(self._shapes[name])))
        return pa.Table.from_arrays(columns, schema=self._schema)

    def _finish(self) -> None:
        """Write the remaining row groups and the footer with all metadata."""
        self._append(self._groups)
        self._texts["chunks"] = spec.canonical_json([[rows, digest.result()] for rows, digest in self._digests])
        metadata = {f"spdebench.{key}": self._texts[key] for key in METADATA_KEYS}
        self._splicer.close(self._encoded(metadata=metadata | {"spdebench.seal": seal(self._texts)}))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._opened.__exit__(kind, error, trace)
            return
        with self._opened:
            self._finish()


def seal(texts: dict[str, str]) -> str:
    """SHA-256 over the texts of all metadata."""
    return hashlib.sha256("\0".join(texts[key] for key in METADATA_KEYS).encode()).hexdigest()
