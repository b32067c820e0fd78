"""Small files that declare large things: refused, in a child that may have 1.5 GB more than its libraries take."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hostile import in_little_memory
from test_fuzz_data import SPEC, forged, texts_of

from spdebench import spec, tensors
from spdebench.data import generate, splice
from spdebench.tasks import Task
from spdebench.training import checkpoints, open_run, train


@pytest.fixture(scope="module")
def native(tmp_path_factory) -> Path:
    return generate(SPEC.equation, n=20, chunk=SPEC.chunk, out=tmp_path_factory.mktemp("bombs"))


# --- Parquet ------------------------------------------------------------------------------------------------------
def declaring(path: Path, rows: int, group: bool) -> Path:
    """A Parquet file whose footer declares so many rows; it holds two."""
    names = ("T", "X", "W", "sol")
    pq.write_table(pa.table({n: [0.0, 1.0] for n in names}), path, compression="none", use_dictionary=False)
    content = path.read_bytes()
    footer, start = splice._footer(memoryview(content))
    footer[splice._ROWS] = (footer[splice._ROWS][0], rows)
    if group:
        first = footer[splice._GROUPS][1][1][0]
        first[3] = (first[3][0], rows)
        for chunk in first[1][1][1]:
            chunk[3][1][5] = (chunk[3][1][5][0], rows)  # num_values of the column's metadata
    text = bytes(splice._packed(splice._STRUCT, footer))
    path.write_bytes(content[:start] + text + struct.pack("<I", len(text)) + b"PAR1")
    return path


def parquet_bombs(place: Path, native: Path) -> list[Path]:
    texts = texts_of(native)
    identity = json.loads(texts["spec"])
    out = [declaring(place / f"rows{group:d}.parquet", 10**12, group) for group in (False, True)]
    for key, value in (("points", 2**62), ("truncation", 10**12), ("truncation", 2**22), ("frames", 10**9)):
        fields = {**identity["fields"], key: value}
        path = place / f"{key}{value}.parquet"
        out.append(forged(native, path, texts | {"spec": json.dumps({**identity, "fields": fields})}))
    out.append(forged(native, place / "n.parquet", texts | {"spec": json.dumps({**identity, "n": 10**12})}))
    chunks = json.dumps([[10**12, "0" * 64]])
    out.append(forged(native, place / "chunks.parquet", texts | {"chunks": chunks}))
    shapes = json.dumps({"u0": [2**31 - 1], "dw": [5, 2**31], "u": [2**40, 2**40]})
    out.append(forged(native, place / "shapes.parquet", texts | {"shapes": shapes}))
    wide = pa.schema([(c, pa.list_(pa.float32(), 2**31 - 1)) for c in ("u0", "dw", "u")])
    pq.write_table(wide.empty_table(), place / "list.parquet")
    return [*out, place / "list.parquet"]


def test_parquet_that_declares_more_than_it_holds(tmp_path, native):
    bombs = parquet_bombs(tmp_path, native)
    said = in_little_memory("open_dataset(x).u\n", [native, *bombs])
    assert said[0] == "taken" and all(line.startswith("refused:") for line in said[1:]), said
    said = in_little_memory("import_published(x, x.with_suffix('.d'))", bombs)
    assert all(line.startswith("refused:") for line in said) and not list(tmp_path.glob("*.d/*"))


# --- arrays -------------------------------------------------------------------------------------------------------
def test_arrays_that_declare_or_unpack_to_more(tmp_path, native):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    np.savez_compressed(tmp_path / "b.npz", prediction=np.zeros(1 << 24, dtype=np.float32))
    assert (tmp_path / "b.npz").stat().st_size < 1 << 17
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as archive:
        archive.writestr("u.npy", (tmp_path / "a.npy").read_bytes())
    names = [tmp_path / name for name in ("a.npy", "b.npz", "c.npz")]
    said = in_little_memory(f"read_prediction(x, open_dataset({str(native)!r}), '', has_t0=True)", names)
    assert all(line.startswith("refused:") for line in said) and "unpacks to" in said[1]


# --- checkpoints --------------------------------------------------------------------------------------------------
def with_pickle(content: bytes, path: Path, compress: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compress) as archive:
        archive.writestr("archive/data.pkl", content)
        archive.writestr("archive/byteorder", b"little")
        archive.writestr("archive/data/0", bytes(64))
        archive.writestr("archive/version", b"3\n")
    return path


class Reference:
    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key


class Tensor:
    """Pickled as torch pickles a tensor, of any size, whatever lies in the archive."""

    def __init__(self, count: int, stride: int) -> None:
        storage = Reference(("storage", torch.FloatStorage, "0", "cpu", count))
        self.arguments = (storage, 0, (count,), (stride,), False, {})

    def __reduce__(self) -> Any:
        return torch._utils._rebuild_tensor_v2, self.arguments


class Pickler(pickle._Pickler):  # type: ignore[name-defined]
    def persistent_id(self, value: Any) -> Any:
        return value.key if isinstance(value, Reference) else None


def pickled(value: Any) -> bytes:
    out = io.BytesIO()
    Pickler(out, protocol=2).dump(value)
    return out.getvalue()


def test_tensors_larger_than_their_file(tmp_path):
    """torch takes a pickle's word for the size of a storage; past the file's end it would crash or tell secrets."""
    sizes = [(16, 1), (10**6, 1), (10**10, 1), (10**12, 0), (2**62, 1)]
    paths = [
        with_pickle(pickled({"digest": "x", "weights": Tensor(count, stride)}), tmp_path / f"{count}.pt")
        for count, stride in sizes
    ]
    paths.append(with_pickle(b"\x80\x02" + b"N0" * (1 << 24) + b"N.", tmp_path / "z.pt", zipfile.ZIP_DEFLATED))
    said = in_little_memory("checkpoints.load(x, 'x')['weights'].sum()", paths)
    assert said[0] == "taken" and all(line.startswith("refused:") for line in said[1:]), said


def safetensors_of(path: Path, shape: list[int], offsets: list[int]) -> Path:
    """A file of 64 bytes of data whose header declares one tensor of this shape."""
    header = {"t": {"dtype": "F32", "shape": shape, "data_offsets": offsets}}
    header |= {"__metadata__": {"content": '{"weights": {"$tensor": "t", "complex": false}}', "checksum": "0"}}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(64))
    return path


def test_safetensors_that_declare_more_than_they_hold(tmp_path):
    declared = [([16], [0, 64]), ([10**6], [0, 64]), ([10**12], [0, 4 * 10**12]), ([2**62, 4], [0, 64]), ([0], [0, 0])]
    paths = [safetensors_of(tmp_path / f"{k}.safetensors", *each) for k, each in enumerate(declared)]
    (tmp_path / "header.safetensors").write_bytes(struct.pack("<Q", 2**60) + bytes(64))
    said = in_little_memory("checkpoints.load(x, 'x')", [*paths, tmp_path / "header.safetensors"])
    assert all(line.startswith("refused:") for line in said) and "checksum" in said[0], said


def test_a_run_that_asks_for_a_giant(tmp_path, native):
    """The weights on the disk bound the model that is built for them."""
    small = {"width": 4, "modes": (2, 2), "layers": 1}
    run = train("fno", Task(native), out=tmp_path / "runs", epochs=1, config=small, test=False)
    folders = []
    for k, change in enumerate(({}, {"width": 10**9}, {"layers": 10**9}, {"layers": 60000}, {"width": 30000})):
        values = json.loads((run.path / "spec.json").read_text())
        values["config"] |= change
        folders.append(tmp_path / f"giant{k}")
        folders[-1].mkdir()
        (folders[-1] / "spec.json").write_text(json.dumps(values))
        content = tensors.load(run.weights_file)
        checkpoints.save(folders[-1] / "best.safetensors", content, open_run(folders[-1]).spec.digest)
    said = in_little_memory("open_run(x).model", folders)
    assert said[0] == "taken" and all(line.startswith("refused:") for line in said[1:]), said


# --- JSON ---------------------------------------------------------------------------------------------------------
BOMBS = {
    "list": "[" * 10**5 + "]" * 10**5,
    "object": '{"a":' * 10**5 + "1" + "}" * 10**5,
    "digits": "9" * 10**6,
    "number": f'{{"version":{"1" * 10**6}}}',
    "exponent": '{"digest":"a","version":1e999999}',
    "surrogates": '"' + "\\ud800" * 10**5 + '"',
    "depth": "[" * (spec.DEPTH + 1) + "]" * (spec.DEPTH + 1),
}


def test_json_bombs(tmp_path):
    for name, line in BOMBS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "phi41.jsonl").write_text(f"{line}\n")
        with pytest.raises(ValueError):
            spec.loads(line)
    said = in_little_memory("read(x)", [tmp_path / name for name in BOMBS], megabytes=400)
    assert all("line 1, is not a run record" in line for line in said)


def test_depth_is_bounded_where_it_says():
    assert spec.loads("[" * spec.DEPTH + "]" * spec.DEPTH) and spec.loads("[]") == []
