"""Row groups encoded apart and put together are the file that one writer writes."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spdebench.data.splice import Splicer


def tables(count: int) -> list[pa.Table]:
    generator = np.random.default_rng(0)
    rows = [7] * (count - 1) + [3]
    return [
        pa.table(
            {
                "x": pa.FixedSizeListArray.from_arrays(pa.array(generator.standard_normal(50 * n).astype("f4")), 50),
                "n": pa.array(generator.integers(0, 3, n)),
                "s": pa.array([["a", "bc"][i % 2] for i in range(n)]),
            }
        )
        for n in rows
    ]


def encoded(parts: list[pa.Table], schema: pa.Schema, metadata: dict[str, str], **options: object) -> bytes:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, **options) as writer:
        for part in parts:
            writer.write_table(part)
        if metadata:
            writer.add_key_value_metadata(metadata)
    return sink.getvalue()


@pytest.mark.parametrize("count", [1, 2, 40, 200])  # from 15 on a list has its long form, offsets their longer ones
@pytest.mark.parametrize(
    "options",
    [
        {"compression": "zstd", "use_dictionary": False, "write_statistics": False, "write_page_checksum": True},
        {"compression": "snappy"},  # dictionary pages and statistics
    ],
)
def test_the_bytes_of_one_writer(count, options):
    parts, metadata = tables(count), {"key": "value" * 100}
    schema, file = parts[0].schema, io.BytesIO()
    splicer = Splicer(file)
    for part in parts:
        splicer.append(memoryview(encoded([part], schema, {}, **options)))
    splicer.close(memoryview(encoded([], schema, metadata, **options)))
    assert file.getvalue() == encoded(parts, schema, metadata, **options)
    assert pq.read_table(file).equals(pa.concat_tables(parts))
