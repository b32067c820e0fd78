"""Files are data: no reader runs what is in them."""

from __future__ import annotations

import ast
import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hostile import Payload

import spdebench
from spdebench import tensors
from spdebench.data import generate, open_dataset
from spdebench.data.predictions import read_prediction
from spdebench.data.published import import_published
from spdebench.equations import equation
from spdebench.errors import UserError
from spdebench.models import features
from spdebench.training import checkpoints

ROOT = Path(spdebench.__file__).parent


@pytest.fixture
def mark(tmp_path) -> Path:
    return tmp_path / "executed"


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    eq = equation("phi41", points=16, truncation=8, frames=4, steps=4)
    return open_dataset(generate(eq, n=4, out=tmp_path_factory.mktemp("data")))


def test_the_payload_works(mark):
    """Else the tests below would show nothing."""
    pickle.loads(pickle.dumps(Payload(mark)))
    assert mark.exists()


def archived(content: bytes) -> bytes:
    """A checkpoint with this pickle in it."""
    file = io.BytesIO()
    torch.save({"weights": torch.zeros(2)}, file)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file.getvalue())) as old, zipfile.ZipFile(out, "w") as new:
        for entry in old.infolist():
            new.writestr(entry.filename, content if entry.filename.endswith(".pkl") else old.read(entry))
    return out.getvalue()


def test_a_checkpoint_runs_nothing(tmp_path, mark):
    whole = io.BytesIO()
    torch.save({"digest": Payload(mark)}, whole)
    legacy = io.BytesIO()
    torch.save({"digest": Payload(mark)}, legacy, _use_new_zipfile_serialization=False)
    plain = pickle.dumps({"digest": Payload(mark)}, protocol=2)
    for content in (whole.getvalue(), legacy.getvalue(), plain, archived(plain), archived(pickle.dumps(Payload(mark)))):
        path = tmp_path / "best.pt"
        path.write_bytes(content)
        with pytest.raises(UserError, match="cannot be read"):
            checkpoints.load(path, "x")
    assert not mark.exists()


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_checkpoint_calls_no_constructor_but_those_of_tensors(tmp_path, protocol):
    """weights_only allows bytearray, whose argument is a size."""

    class Large:
        def __reduce__(self):
            return bytearray, (1 << 40,)

    path = tmp_path / "large.pt"
    path.write_bytes(archived(pickle.dumps({"digest": Large()}, protocol=protocol)))
    with pytest.raises(ValueError, match="names"):
        tensors.load(path)


def test_what_we_write_we_read(tmp_path):
    kinds = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.complex64]
    content = {"t": [torch.ones(3).to(kind) for kind in kinds], "n": {"b": 1.5, "a": None}, "s": "text", "l": [1, True]}
    content["aligned"] = [torch.ones(n, dtype=torch.complex128) for n in (1, 100)]  # 8 bytes of the file are enough
    tied, strided = torch.arange(6.0), torch.arange(6.0).reshape(2, 3).T
    content |= {"tied": [tied, tied], "part": tied[2:], "strided": strided, "scalar": torch.tensor(2), "none": {}}
    tensors.save(tmp_path / "x.safetensors", content)
    found = tensors.load(tmp_path / "x.safetensors")
    for a, b in zip(found["tied"] + found["aligned"], content["tied"] + content["aligned"], strict=True):
        assert torch.equal(a.clone(), b)
    assert all(torch.equal(found[key], content[key]) for key in ("part", "strided", "scalar")) and found["none"] == {}
    assert [t.dtype for t in found["t"]] == kinds and all(
        torch.equal(a, b) for a, b in zip(found["t"], content["t"], strict=True)
    )
    assert {k: found[k] for k in "nsl"} == {k: content[k] for k in "nsl"}


def test_arrays_run_nothing(tmp_path, mark, truth):
    evil = np.array([Payload(mark)], dtype=object)
    np.save(tmp_path / "a.npy", evil, allow_pickle=True)
    np.savez(tmp_path / "b.npz", prediction=evil)
    (tmp_path / "c.npy").write_bytes(pickle.dumps(Payload(mark)))
    for name in ("a.npy", "b.npz", "c.npy"):
        with pytest.raises(UserError):
            read_prediction(tmp_path / name, truth, "", has_t0=True)
    assert not mark.exists()


def test_a_parquet_extension_type_runs_nothing(tmp_path, mark):
    """Arrow once unpickled the metadata of such columns by itself."""
    metadata = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": pickle.dumps(Payload(mark)),
    }
    fields = [pa.field(name, pa.float64(), metadata=metadata) for name in ("T", "X", "W", "sol")]
    pq.write_table(pa.table([[0.0, 1.0]] * 4, schema=pa.schema(fields)), tmp_path / "evil.parquet")
    for read in (open_dataset, lambda path: import_published(path, tmp_path)):
        with pytest.raises(UserError):
            read(tmp_path / "evil.parquet")
    assert not mark.exists()


def calls() -> list[tuple[str, str, ast.Call]]:
    """(file, what is called, the call) of the whole package."""
    return [
        (path.relative_to(ROOT).as_posix(), ast.unparse(node.func), node)
        for path in sorted(ROOT.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
    ]


def test_the_package_has_no_reader_that_could():
    """Python is run from --with files only, tensors and arrays are loaded as such, no shell is started."""
    wrong, seen = [], set()
    for file, name, call in calls():
        words = {k.arg: ast.unparse(k.value) for k in call.keywords}
        last = name.rpartition(".")[2]
        if name in ("eval", "exec", "os.system", "os.popen") or (last == "exec_module" and file != "registry.py"):
            wrong.append(f"{file}: {name}")
        if name.startswith(("pickle.", "marshal.", "shelve.", "joblib.", "yaml.")) and name != "yaml.safe_load":
            wrong.append(f"{file}: {name}")
        if name == "torch.load":
            seen.add(file)
            wrong += [] if words.get("weights_only") == "True" else [f"{file}: {name} without weights_only"]
        if name == "np.load" and words.get("allow_pickle") != "False":
            wrong.append(f"{file}: {name} without allow_pickle=False")
        if words.get("shell") == "True" or last in ("read_pickle", "HDFStore") or name == "torch.jit.load":
            wrong.append(f"{file}: {name}")
    assert not wrong and seen == {"tensors.py"}


def test_json_from_files_is_bounded():
    """One reader of JSON. What is left to json.loads: our own text, notes whose loss is harmless, and a line's end."""
    own = {"spec.py", "training/identity.py", "registry.py"}
    notes = {"engines/locks.py", "data/generation_status.py", "records/store.py"}
    assert {file for file, name, _ in calls() if name in ("json.loads", "json.load")} <= own | notes


def test_kept_features_are_read_as_features_or_computed_again(tmp_path, mark):
    good = {"a": torch.ones(3, 2), "b": torch.zeros(3)}
    tensors.save(tmp_path / "good.safetensors", good)
    assert features._read(tmp_path / "good.safetensors", 3).keys() == good.keys()
    wrong = [{"a": torch.ones(2, 2)}, {"a": "text"}, {"a": torch.tensor(1.0)}]
    for content in wrong:
        tensors.save(tmp_path / "wrong.safetensors", content)
        with pytest.raises(ValueError, match="is no feature"):
            features._read(tmp_path / "wrong.safetensors", 3)
    torch.save({"a": Payload(mark)}, tmp_path / "evil.pt")
    with pytest.raises(ValueError):
        features._read(tmp_path / "evil.pt", 3)
    assert not mark.exists()
