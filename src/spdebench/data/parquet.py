"""How files for others are written with Parquet: all or nothing, with checksums of pages and without statistics."""

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
    """A writer of ``path``, which is there once everything is written.

    ``dictionary``: columns of few values; ``fields``: columns of floats of a field, whose bytes are split by place.
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
