"""Writes Parquet files for other libraries: a file appears only when complete, with page checksums and no
statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from spdebench.files import replacing


@contextmanager
def new_parquet(
    path: Path, schema: pa.Schema, *, dictionary: Sequence[str], fields: Sequence[str]
) -> Iterator[pq.ParquetWriter]:
    """A writer of ``path``; the file appears when everything is written. ``dictionary`` names columns with few
    different values, and ``fields`` columns of floats, which are byte-stream split.
    """
    with (
        replacing(path) as temporary,
        temporary.open("wb") as file,
        pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            use_dictionary=list(dictionary),
            use_byte_stream_split=list(fields),
            write_statistics=False,
            write_page_checksum=True,
        ) as writer,
    ):
        yield writer
