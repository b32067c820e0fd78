"""Names from files stay in their folder, and links in a folder lead nowhere."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hostile import cases
from hypothesis import given
from hypothesis import strategies as st
from test_fuzz_data import forged, texts_of

from fake_records import dataset, record
from spdebench.data import generate, open_dataset
from spdebench.data.published import export_published, import_published
from spdebench.equations import equation
from spdebench.errors import UserError
from spdebench.files import plain_name, replacing, write_text
from spdebench.records import store as records
from spdebench.report.site import build, build_site
from spdebench.training.folder import remove_partial_files
from spdebench.training.train import _claim as claim

NAMES = [
    "../x",
    "..",
    ".",
    "/etc/x",
    "a/b",
    "a\\b",
    "a\0b",
    "a\nb",
    "x" * 300,
    "é" * 150,
    "con",
    "NUL.txt",
    "",
    ".hidden",
]
NAMES += ["~/x/", "a:b", "x ", "lpt1.jsonl", 3, None, ["x"], {"a": 1}]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_what_cannot_name_a_file(name):
    with pytest.raises(UserError):
        plain_name(name, "it")


@cases(300)
@given(st.text(max_size=40))
def test_a_name_that_passes_stays_where_it_is(tmp_path_factory, name):
    base = Path("/somewhere/deep")
    try:
        chosen = plain_name(name, "it")
    except UserError:
        return
    path = Path(os.path.normpath(base / chosen))
    assert path.parent == base and path.name == chosen


@pytest.mark.parametrize("name", [n for n in NAMES if n], ids=repr)
def test_a_record_cannot_choose_another_file(tmp_path, name):
    entry = record("fno", dataset(8, 0.0), datasets=[dataset(8, 0.0).to_dict() | {"equation": name}])
    results = tmp_path / "results"
    with pytest.raises(UserError):
        records.add(results, entry)
    assert not [path for path in tmp_path.rglob("*") if path != results]


def test_an_imported_file_cannot_choose_where_it_is_exported_to(tmp_path):
    eq = equation("phi41", points=16, truncation=8, frames=4, steps=4)
    flat = export_published(open_dataset(generate(eq, n=4, out=tmp_path / "a")), tmp_path / "a")
    native = import_published(flat, tmp_path / "a")
    texts = texts_of(native)
    for k, name in enumerate(n for n in NAMES if isinstance(n, str)):
        identity = json.loads(texts["spec"])
        identity["published"]["file"] = name
        path = forged(native, tmp_path / "a" / f"{k}.parquet", texts | {"spec": json.dumps(identity)})
        with pytest.raises(UserError):
            export_published(open_dataset(path), tmp_path / "out")
    assert not (tmp_path / "out").exists() and {p.name for p in tmp_path.iterdir()} == {"a"}


# --- links --------------------------------------------------------------------------------------------------------
@pytest.fixture
def precious(tmp_path) -> Path:
    """A file of the user's that links lead to."""
    path = tmp_path / "home" / "precious.txt"
    path.parent.mkdir()
    path.write_text("mine")
    return path


def test_sweeping_up_follows_no_link(tmp_path, precious):
    folder = tmp_path / "run"
    (folder / ".dir.tmp").mkdir(parents=True)
    (folder / ".a.tmp").symlink_to(precious)
    (folder / ".b.tmp").symlink_to(precious.parent)
    (folder / ".c.tmp").write_text("left behind")
    remove_partial_files(folder)
    assert {p.name for p in folder.iterdir()} == {".dir.tmp"} and precious.read_text() == "mine"


def test_beginning_anew_follows_no_link(tmp_path, precious):
    from spdebench.training import Run
    from spdebench.training.identity import plan

    spec = plan("fno", equation("phi41", points=16, truncation=8, frames=4, steps=4))
    run = Run(tmp_path / spec.name, spec)
    claim(run, resume=True)
    for name in ("last.safetensors", "best.safetensors", "last.pt", "best.pt", "log.jsonl"):
        run.file(name).symlink_to(precious)
    run.file("tensorboard").symlink_to(precious.parent)
    claim(run, resume=False)
    assert precious.read_text() == "mine" and not run.file("last.safetensors").is_symlink()


def test_writing_follows_no_link(tmp_path, precious):
    target = tmp_path / "out" / "x.json"
    target.parent.mkdir()
    target.symlink_to(precious)
    write_text(target, "new")
    assert target.read_text() == "new" and precious.read_text() == "mine" and not target.is_symlink()
    with replacing(target) as first, replacing(target) as second:  # names that nobody can lay a link at before
        assert first != second and first.parent == target.parent
        first.write_text("a")
        second.write_text("b")


def test_records_are_not_appended_through_a_link(tmp_path, precious):
    results = tmp_path / "results"
    results.mkdir()
    (results / "phi41.jsonl").symlink_to(precious)
    with pytest.raises(UserError, match="cannot write"):
        records.add(results, record("fno", dataset(8, 0.0)))
    assert precious.read_text() == "mine"


def test_a_lock_is_not_taken_through_a_link(tmp_path, precious):
    from spdebench.training.folder import locked

    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "lock").symlink_to(precious)
    with pytest.raises(UserError, match="cannot write"), locked(folder):
        pass
    assert precious.read_text() == "mine"


def test_a_site_replaces_only_pages(tmp_path, monkeypatch):
    """A list of files that came with a folder does not make the user's own files ours to remove."""
    monkeypatch.setattr(build, "TABLES", ())
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "thesis.tex").write_text("mine")
    for listed in (["thesis.tex", build.MARKER], "thesis.tex", [3], {"thesis.tex": 1}, None):
        (folder / build.MARKER).write_text(json.dumps({"files": listed}))
        with pytest.raises(UserError):
            build_site({"0" * 10: record("fno", dataset(8, 0.0))}, folder)
    assert (folder / "thesis.tex").read_text() == "mine"


def test_predictions_of_a_run_may_be_a_link_to_anything(tmp_path, precious):
    """It is read as an array, or not at all."""
    from spdebench.training import Run
    from spdebench.training.identity import plan

    spec = plan("fno", equation("phi41", points=16, truncation=8, frames=4, steps=4))
    run = Run(tmp_path, spec)
    run.file("predictions.npy").symlink_to(precious)
    with pytest.raises(UserError, match="cannot be read"):
        run.predictions  # noqa: B018
    run.file("predictions.npy").unlink()
    np.save(run.file("predictions.npy"), np.zeros(3))
    assert run.predictions is not None and run.predictions.shape == (3,)
