"""A published dataset, read with the real libraries: `datasets` streams arrays, `mlcroissant` accepts the metadata."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import spdebench as sb
from spdebench.cli.main import main
from spdebench.data import Dataset, hub
from spdebench.data.blocks import SPLIT_SEED, block_rows
from spdebench.data.publish import publish
from spdebench.data.published import export_published
from spdebench.errors import UserError

REQUIRED_BY_NEURIPS = (
    *("rai:dataLimitations", "rai:dataBiases", "rai:personalSensitiveInformation", "rai:dataUseCases"),
    *("rai:dataSocialImpact", "rai:hasSyntheticData", "prov:wasDerivedFrom", "prov:wasGeneratedBy"),
)
"""The minimal fields on responsible use in the hosting guidelines of the track on evaluations and datasets, 2026."""


def brief(dataset: Dataset) -> str:
    return f"# A card\n\n{len(dataset)} samples\n"


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> tuple[Path, Dataset, Dataset]:
    """A folder with a law dataset in one dimension (and its members) and a dataset in two dimensions."""
    folder = tmp_path_factory.mktemp("published")
    line = sb.equation("phi41", points=16, truncation=8, frames=4, steps=4)
    plane = sb.equation("phi42", points=8, truncation=4, frames=3, steps=3)
    law = sb.open_dataset(sb.generate(line, n=150, seed=1, seen=2, members=3, out=folder / "native"))
    flat = sb.open_dataset(sb.generate(plane, n=5, out=folder / "native"))
    for dataset in (law, flat):
        publish(dataset.path, folder / "out", card=brief, creator="A. Author")
    return folder / "out", law, flat


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    """The real library, which looks nothing up on the network and keeps nothing in the user's cache.

    Its own settings are changed, no environment variables: huggingface_hub reads those once, when it is imported. So
    `hub` imports it first, with the settings that other tests need.
    """
    hub._hub()
    import datasets

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
        yield datasets


# --- datasets.load_dataset ----------------------------------------------------------------------------------------
def test_rows_stream_as_arrays_of_the_right_shape(published, datasets):
    folder, law, flat = published
    rows = datasets.load_dataset(str(folder), law.path.stem, split="samples", streaming=True)
    assert isinstance(rows, datasets.IterableDataset)
    assert rows.features["u"] == datasets.Array2D((5, 16), "float32")
    for k, row in enumerate(rows.with_format("numpy").take(70)):  # two row groups
        assert row["sample"] == k and row["part"] in ("train", "val", "test")
        for column in ("u0", "dw", "u", "dw_seen"):
            assert isinstance(row[column], np.ndarray) and row[column].dtype == np.float32
            np.testing.assert_array_equal(row[column], getattr(law, column)[k])
    plane = next(iter(datasets.load_dataset(str(folder), split="samples", streaming=True).with_format("torch")))
    assert plane["u"].shape == (4, 8, 8) and plane["u0"].shape == (8, 8)  # the last one pushed is the default
    np.testing.assert_array_equal(plane["u"], flat.u[0])


def test_parts_are_those_of_the_default_split(published, datasets):
    folder, law, _ = published
    rows = datasets.load_dataset(str(folder), law.path.stem, split="samples", streaming=True)
    found = [row["sample"] for row in rows.select_columns(["sample", "part"]) if row["part"] == "test"]
    assert found == block_rows(SPLIT_SEED, len(law))["test"].tolist()


def test_rows_of_members_name_their_sample(published, datasets):
    folder, law, _ = published
    name = law.members_file.path.stem
    rows = list(datasets.load_dataset(str(folder), name, split="members", streaming=True).with_format("numpy"))
    members = law.members()
    assert len(rows) == 2 * len(law.members_file.spec.inputs)
    for row in rows:
        which = law.members_file.spec.inputs.tolist().index(row["sample"])
        np.testing.assert_array_equal(row["u"], members[which, row["member"]])


def test_row_groups_are_read_one_after_the_other(published, datasets, tmp_path):
    """The first rows come although the last row group is damaged; reading on finds the damage.

    Within one shard pyarrow may read ahead, so that every row group is made a shard of its own.
    """
    folder, law, _ = published
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    file = copy / law.path.name
    last = pq.ParquetFile(file).metadata.row_group(pq.ParquetFile(file).num_row_groups - 1)
    start = last.column(last.num_columns - 1).data_page_offset
    with file.open("r+b") as content:
        content.seek(start)
        content.write(b"\xff" * 40)
    rows = datasets.load_dataset(str(copy), law.path.stem, split="samples", streaming=True).with_format("numpy")
    rows = rows.reshard()
    assert rows.num_shards == pq.ParquetFile(file).num_row_groups > 1
    np.testing.assert_array_equal(next(iter(rows))["u"], law.u[0])
    with pytest.raises(OSError):
        list(rows)


# --- Croissant ----------------------------------------------------------------------------------------------------
def test_croissant_is_valid_and_leads_to_the_arrays(published):
    import mlcroissant

    folder, law, _ = published
    text = json.loads((folder / "croissant.json").read_text())
    assert text["conformsTo"] == "http://mlcommons.org/croissant/1.1"
    assert all(text[key] not in ("", [], None) for key in REQUIRED_BY_NEURIPS)
    found = mlcroissant.Dataset(folder / "croissant.json")
    assert not found.metadata.issues.errors and not found.metadata.issues.warnings
    assert found.metadata.data_limitations and found.metadata.personal_sensitive_information
    assert {each.name for each in found.metadata.record_sets} == {p.stem for p in folder.glob("*.parquet")}
    row = next(iter(found.records(law.path.stem)))
    np.testing.assert_array_equal(np.asarray(row[f"{law.path.stem}/u"]), law.u[0])


# --- the same file for spdebench ----------------------------------------------------------------------------------
def test_a_published_file_is_a_dataset_of_ours(published):
    folder, law, flat = published
    for dataset in (law, law.members_file, flat):
        again = sb.open_dataset(folder / dataset.path.name)
        assert again.identity == dataset.identity and again.chunk_digests == dataset.chunk_digests
        assert all(np.array_equal(again.read(c), dataset.read(c)) for c in dataset.shapes)
    assert sb.verify(sb.open_dataset(folder / flat.path.name)).good
    np.testing.assert_array_equal(sb.open_dataset(folder / law.path.name).members(), law.members())


def test_a_file_may_not_have_other_columns(published, tmp_path):
    folder, _, flat = published
    table = pq.read_table(folder / flat.path.name)
    raw = pq.read_metadata(folder / flat.path.name).metadata
    for wrong in (table.drop(["dw"]), table.append_column("more", table["sample"]), table.select([0, 1, 2, 3, 4, 4])):
        path = tmp_path / "wrong.parquet"
        pq.write_table(wrong.replace_schema_metadata(raw), path)
        with pytest.raises(UserError):
            sb.open_dataset(path)


# --- what is refused ----------------------------------------------------------------------------------------------
def test_mistakes_are_one_line_and_leave_nothing(published, tmp_path, capsys):
    _, law, flat = published

    def said(*words: str) -> str:
        with pytest.raises(SystemExit) as stop:
            main(["data", "push", *words])
        assert stop.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    new = str(tmp_path / "new")
    assert "push phi41" in said(str(law.members_file.path), "--out", new)
    assert "holds the native file" in said(str(flat.path), "--out", str(flat.path.parent))
    assert "a licence is written as on the hub" in said(str(flat.path), "--out", new, "--license", "CC BY")
    assert not (tmp_path / "new").exists()
    (tmp_path / flat.path.name).write_bytes(b"mine")
    assert "holds other data" in said(str(flat.path), "--out", str(tmp_path))
    (spaced := tmp_path / "a b.parquet").write_bytes(flat.path.read_bytes())
    assert "rename" in said(str(spaced), "--out", new)


def test_a_readme_of_somebody_else_stays(published, tmp_path):
    _, _, flat = published
    (tmp_path / "README.md").write_text("mine")
    written = publish(flat.path, tmp_path, card=brief)
    assert (tmp_path / "README.md").read_text() == "mine" and tmp_path / "README.md" not in written


def test_imported_data_name_their_source_and_claim_no_licence(published, datasets, tmp_path):
    _, law, _ = published
    flat = export_published(law, tmp_path, name="Phi41-01_xi-8-150.parquet")
    imported = sb.open_dataset(sb.import_published(flat, tmp_path))
    publish(imported.path, tmp_path / "out")
    text = json.loads((tmp_path / "out" / "croissant.json").read_text())
    assert text["prov:wasDerivedFrom"] == [flat.name] and text["rai:hasSyntheticData"]
    assert text["license"] == "unknown" and 'license: "unknown"' in (tmp_path / "out" / "README.md").read_text()
    row = next(iter(datasets.load_dataset(str(tmp_path / "out"), split="samples", streaming=True).with_format("numpy")))
    np.testing.assert_array_equal(row["u"], law.u[0])
