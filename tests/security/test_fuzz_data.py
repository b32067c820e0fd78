"""Damaged, forged and random dataset files: a dataset that is whole, or one line."""

from __future__ import annotations

import functools
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import cases, changed, changes, edited, edits, noise, obeys_the_law
from hypothesis import given
from hypothesis import strategies as st

from flat_files import read_flat
from spdebench.data import Dataset, generate, open_dataset
from spdebench.data.flat import LAYOUTS
from spdebench.data.generate import _Unit as Unit
from spdebench.data.generate import make_part, read_part
from spdebench.data.generation_status import parts_folder
from spdebench.data.identity import DatasetSpec, from_json
from spdebench.data.predictions import read_prediction
from spdebench.data.publish import write_nested
from spdebench.data.published import export_published, import_published
from spdebench.data.verify import check_sums
from spdebench.equations import equation
from spdebench.spec import canonical_json

SPEC = DatasetSpec(equation=equation("phi41", points=16, truncation=8, frames=4, steps=4), n=6, chunk=3)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def native(place) -> Path:
    return generate(SPEC.equation, n=SPEC.n, chunk=SPEC.chunk, out=place / "native")


@pytest.fixture(scope="module")
def nested(native, place) -> Path:
    """The same dataset as it is published, with nested lists."""
    write_nested(open_dataset(native), place / "nested.parquet")
    return place / "nested.parquet"


@pytest.fixture(scope="module")
def flat(native, place) -> Path:
    return export_published(open_dataset(native), place / "flat")


@pytest.fixture(scope="module")
def imported(flat, place) -> Path:
    return import_published(flat, place / "imported")


def look_all_over(path: Path) -> Any:
    """Everything that is read of a native file."""
    ds = open_dataset(path)
    ds.grid, ds.times, ds.imported, len(ds)
    shapes = ds.u0.shape, ds.dw.shape, ds.u.shape
    assert shapes == ((len(ds), *ds.grid.points), *((len(ds), len(ds.times), *ds.grid.points),) * 2)
    check_sums(ds)
    return ds.u


@functools.cache
def truth(path: Path) -> Dataset:
    return open_dataset(path)


# --- native -------------------------------------------------------------------------------------------------------
@cases(1350)
@given(edits)
def test_a_damaged_native_file(native, place, steps):
    """What passes all checks has the numbers of the file that was damaged: checksums cover every one of them."""
    path = place / "damaged.parquet"
    path.write_bytes(edited(native.read_bytes(), steps))
    u = obeys_the_law(lambda: look_all_over(path))
    assert u is None or np.array_equal(u, truth(native).u)


@cases(150)
@given(edits)
def test_a_damaged_published_file(nested, native, place, steps):
    path = place / "damaged.parquet"
    path.write_bytes(edited(nested.read_bytes(), steps))
    u = obeys_the_law(lambda: look_all_over(path))
    assert u is None or np.array_equal(u, truth(native).u)


@cases(400)
@given(noise, st.booleans())
def test_a_random_file_is_no_dataset(place, content, framed):
    path = place / "random.parquet"
    path.write_bytes(b"PAR1" + content + len(content).to_bytes(4, "little") + b"PAR1" if framed else content)
    assert obeys_the_law(lambda: look_all_over(path)) is None
    assert obeys_the_law(lambda: import_published(path, place)) is None


@functools.cache
def whole_table(path: Path) -> pa.Table:
    return pq.read_table(path)


def forged(source: Path, target: Path, texts: dict[str, str]) -> Path:
    """A native file with other metadata and a seal that fits them, as anyone can make it."""
    table = whole_table(source)
    seal = hashlib.sha256("\0".join(texts[k] for k in ("spec", "shapes", "chunks", "made")).encode()).hexdigest()
    metadata = {f"spdebench.{key}": text for key, text in (texts | {"seal": seal}).items()}
    pq.write_table(table.replace_schema_metadata(metadata), target, compression="zstd")
    return target


@functools.cache
def texts_of(path: Path) -> dict[str, str]:
    raw = pq.ParquetFile(path).metadata.metadata
    return {key: raw[f"spdebench.{key}".encode()].decode() for key in ("spec", "shapes", "chunks", "made")}


@cases(700)
@given(st.sampled_from(("spec", "shapes", "chunks", "made")), changes, st.booleans())
def test_forged_metadata(native, imported, place, key, steps, foreign):
    source = imported if foreign else native
    texts = texts_of(source)
    path = forged(source, place / "forged.parquet", texts | {key: changed(json.loads(texts[key]), steps)})
    if obeys_the_law(lambda: look_all_over(path)) is not None and foreign:
        target = place / "exported"
        written = obeys_the_law(lambda: export_published(open_dataset(path), target))
        assert written is None or written.parent == target
        for left in target.glob("*"):
            left.unlink()


@cases(900)
@given(changes)
def test_a_forged_spec(steps):
    spec = obeys_the_law(lambda: from_json(changed(SPEC.to_dict(), steps)))
    if spec is not None:
        assert "/" not in spec.file_name and spec.file_name.isprintable() and len(spec.file_name) < 200
        assert from_json(canonical_json(spec.to_dict())) == spec


# --- published ----------------------------------------------------------------------------------------------------
@cases(700)
@given(edits)
def test_a_damaged_flat_file(flat, place, steps):
    path, out = place / "damaged-flat.parquet", place / "in"
    path.write_bytes(edited(flat.read_bytes(), steps))
    written = obeys_the_law(lambda: import_published(path, out))
    if written is not None:
        look_all_over(written)
    for left in out.glob("*") if out.exists() else ():
        assert left == written, f"{left} was left behind"
        left.unlink()


columns = st.dictionaries(
    st.sampled_from(["T", "X", "Y", "W", "sol", "eps", "other"]),
    st.lists(st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0, float("nan"), float("inf"), 1e308])), max_size=8),
    max_size=6,
)
kinds = st.sampled_from(
    [pa.float64(), pa.float32(), pa.float16(), pa.int8(), pa.string(), pa.bool_(), pa.list_(pa.int32())]
)


@cases(500)
@given(columns, st.lists(kinds, min_size=7, max_size=7), st.integers(0, 12), st.sampled_from(["auto", *LAYOUTS]))
def test_a_flat_file_of_other_columns(place, values, types, rows, variant):
    path = place / "odd_12_4.parquet"
    made = {}
    for (name, entries), kind in zip(values.items(), types, strict=False):
        full = [(entries or [None])[k % max(1, len(entries))] for k in range(rows)]
        if kind in (pa.string(), pa.bool_()) or pa.types.is_list(kind):
            other = {pa.string(): str, pa.bool_(): bool}.get(kind, lambda v: [1])
            full = [None if v is None else other(v) for v in full]
        elif kind == pa.int8():
            full = [None if v is None or not abs(v) < 9 else int(v) for v in full]
        made[name] = pa.array(full, pa.float32() if kind == pa.float16() else kind).cast(kind, safe=False)
    pq.write_table(pa.table(made), path)
    written = obeys_the_law(lambda: import_published(path, place / "odd", variant=variant))
    if written is not None:
        obeys_the_law(lambda: look_all_over(written))
        written.unlink()
    for layout in LAYOUTS.values():
        obeys_the_law(lambda layout=layout: read_flat(path, layout))


# --- chunks and predictions ---------------------------------------------------------------------------------------
@cases(400)
@given(edits)
def test_a_damaged_chunk_is_made_again(native, place, steps):
    """A chunk that is taken has the bytes that were written."""
    folder = place / "parts"
    path = folder / "chunk-000000.f4"
    if not path.exists():
        make_part(Unit(canonical_json(SPEC.to_dict()), 0, str(folder), "cpu"))
    whole = path.read_bytes()
    path.write_bytes(edited(whole, steps))
    found = read_part(SPEC, folder, 0)
    assert found is None or np.array_equal(found.arrays[2], truth(native).u[: SPEC.chunk])
    path.write_bytes(whole)


def test_chunks_are_in_a_folder_next_to_their_file(native):
    assert parts_folder(native).parent == native.parent


@functools.cache
def saved(path: Path, kind: str) -> bytes:
    file = io.BytesIO()
    {".npy": np.save, ".npz": np.savez, ".npz packed": np.savez_compressed}[kind](file, truth(path).u)
    return file.getvalue()


@cases(800)
@given(st.sampled_from((".npy", ".npz", ".npz packed")), edits)
def test_a_damaged_prediction(native, place, kind, steps):
    true = truth(native)
    path = place / f"prediction{kind.split()[0]}"
    path.write_bytes(edited(saved(native, kind), steps))
    found = obeys_the_law(lambda: read_prediction(path, true, "", has_t0=True))
    most = 2 * path.stat().st_size + 16 * true.u.size
    assert found is None or (found[0].dtype.kind in "fiu" and found[0].nbytes <= most)


headers = st.one_of(
    st.binary(max_size=200),
    st.sampled_from(
        [
            b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}",
            b"{'descr': '|O', 'fortran_order': False, 'shape': (3,)}",
            b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -1)}",
            b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
            b"{'descr': '<U9', 'fortran_order': False, 'shape': (1,)}",
            b"{'descr': 'V8', 'shape': (), 'x': 1}",
            *(b"(" * 9000, b"-" * 9000 + b"1", b"[" * 200),
        ]
    ),
)


@cases(250)
@given(headers, st.sampled_from([b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x09"]), noise)
def test_an_array_with_any_header(native, place, header, version, body):
    path = place / "header.npy"
    width = 2 if version[0] == 1 else 4
    path.write_bytes(b"\x93NUMPY" + version + len(header).to_bytes(width, "little") + header + body)
    obeys_the_law(lambda: read_prediction(path, truth(native), "", has_t0=True))
