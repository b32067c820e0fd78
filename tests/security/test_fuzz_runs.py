"""Damaged, forged and random run folders, checkpoints, results and words: an object, or one line."""

from __future__ import annotations

import functools
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hostile import cases, changed, changes, edited, edits, hostile_values, noise, obeys_the_law
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save as encode

from fake_records import dataset, written
from spdebench import spec, tensors
from spdebench.campaign import plan
from spdebench.equations import EQUATIONS, equation
from spdebench.metrics import Scores, evaluate
from spdebench.paper.base import Table
from spdebench.paper.fill import fill
from spdebench.records import FigureData
from spdebench.records import store as records
from spdebench.records.fields import FieldData, PackedFields
from spdebench.records.record import LossLog
from spdebench.report.tables import FORMATS, render
from spdebench.tasks import Task, TaskSpec
from spdebench.training import open_run, train
from spdebench.training.options import TrainOptions
from spdebench.training.overrides import alternatives, sort_overrides
from tiny_tables import made_up, tiny_table


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def run_files(place) -> dict[str, bytes]:
    """The files of a finished run."""
    from spdebench.data import generate

    torch.set_num_threads(1)
    data = generate(equation("phi41", points=16, truncation=8, frames=4, steps=4), n=20, out=place / "data")
    run = train("fno", Task(data), out=place / "runs", epochs=2, config={"width": 4, "modes": (2, 2), "layers": 1})
    return {path.name: path.read_bytes() for path in run.path.iterdir() if path.is_file()}


def look_all_over(folder: Path) -> None:
    """Everything that is read of a run, each as far as it goes."""
    run = obeys_the_law(lambda: open_run(folder))
    if run is None:
        return
    for read in (
        lambda: (run.name, run.spec.train_options, run.spec.task_spec, run.task_setting),
        lambda: (run.best, run.val, run.model),
        lambda: (run.log, run.record, run.predictions),
        lambda: run.scores.rows(),
    ):
        obeys_the_law(read)


# --- run folders --------------------------------------------------------------------------------------------------
@cases(300)
@given(st.sampled_from(("spec.json", "record.json", "scores.json")), changes)
def test_a_forged_run(run_files, place, name, steps):
    folder = place / "forged"
    folder.mkdir(exist_ok=True)
    text = changed(json.loads(run_files[name]), steps)
    for file, content in (run_files | {name: text.encode()}).items():
        (folder / file).write_bytes(content)
    look_all_over(folder)


@cases(250)
@given(
    st.sampled_from(("spec.json", "log.jsonl", "best.safetensors", "record.json", "scores.json", "predictions.npy")),
    edits,
)
def test_a_damaged_run(run_files, place, name, steps):
    folder = place / "damaged"
    folder.mkdir(exist_ok=True)
    for file, content in (run_files | {name: edited(run_files[name], steps)}).items():
        (folder / file).write_bytes(content)
    look_all_over(folder)


@cases(60)
@given(st.sampled_from(("spec", "record")), changes)
def test_a_forged_model_file(run_files, place, key, steps):
    """A file of one model whose checksum fits: spec and record are checked like those of a run."""
    path = place / "model.safetensors"
    path.write_bytes(run_files["best.safetensors"])
    texts = {name: run_files[f"{name}.json"].decode() for name in ("spec", "record")}
    texts[key] = changed(json.loads(texts[key]), steps)
    named: dict[str, torch.Tensor] = {}
    text = json.dumps(tensors._without_tensors({**tensors.load(path), "spec": "@spec", "record": "@record"}, "", named))
    for name, inner in texts.items():
        text = text.replace(f'"@{name}"', inner)
    path.write_bytes(encode(named, {"content": text, "checksum": tensors._checksum(text, named)}))
    model = obeys_the_law(lambda: open_run(path))
    if model is not None:
        obeys_the_law(lambda: (model.name, model.record, model.task_setting, model.model))


@pytest.fixture(scope="module")
def checkpoint_files(run_files, tmp_path_factory) -> tuple[dict[str, Any], dict[str, bytes]]:
    """A checkpoint, and its files as this version and as earlier ones wrote them."""
    path = tmp_path_factory.mktemp("checkpoint") / "best.safetensors"
    path.write_bytes(run_files["best.safetensors"])
    content, old = tensors.load(path), io.BytesIO()
    torch.save(content, old)
    return content["weights"], {"new": path.read_bytes(), "old": old.getvalue()}


@cases(900)
@given(st.sampled_from(("new", "old")), edits)
def test_a_damaged_checkpoint(checkpoint_files, place, version, steps):
    """What is read has the weights that were written: the file's checksums cover them."""
    whole, files = checkpoint_files
    path = place / ("damaged.safetensors" if version == "new" else "damaged.pt")
    path.write_bytes(edited(files[version], steps))
    try:
        found = tensors.load(path)
    except (OSError, ValueError) as error:
        assert "\n" not in str(error)
        return
    for key, value in found["weights"].items():
        assert torch.equal(value, whole[key])


@cases(150)
@given(noise, st.sampled_from([b"", b"PK\x03\x04", b"\x80\x02", b"\x80\x04\x95"]))
def test_random_bytes_are_no_checkpoint(place, content, start):
    path = place / "random.pt"
    path.write_bytes(start + content)
    with pytest.raises(ValueError):
        tensors.load(path)


@functools.cache
def some_scores() -> dict[str, Any]:
    eq = equation("phi41", points=16, truncation=8, frames=4, steps=4)
    rng = np.random.default_rng(0)
    u = rng.standard_normal((6, 5, 16)).astype(np.float32)
    return evaluate(u + 0.1, u, eq.grid, metrics=("rel_l2", "std_ratio"), resamples=20).to_dict()


@cases(450)
@given(changes)
def test_forged_scores(steps):
    found = obeys_the_law(lambda: Scores.from_json(changed(some_scores(), steps)))
    if found is not None:
        assert all(isinstance(value, float) for value in found.summary().values())
        assert found.rows() is not None and isinstance(str(found), str)


# --- results ------------------------------------------------------------------------------------------------------
@functools.cache
def small_table() -> tuple[Table, dict[str, Any]]:
    table = tiny_table()
    runs = {run.digest: run for cell in table.cells(2) for run in cell.runs}
    fields = FieldData(0, (1, 2), (0.1, 0.2), {"4 x 4": PackedFields.of(np.ones((2, 4, 4)))})
    data = FigureData(log=LossLog((1,), (0.5,), (0.4,)), fields=fields)
    return table, {digest: replace(made_up(run, 0.1), figure_data=data) for digest, run in runs.items()}


@cases(600)
@given(changes, st.booleans())
def test_a_forged_results_line(place, steps, later):
    """Whatever a line holds, tables are filled, planned and written, or the line is named."""
    folder = place / "results"
    folder.mkdir(exist_ok=True)
    table, known = small_table()
    first, second, *_ = known.values()
    short = {"version": 1, "digest": first.digest, "name": "x", "model": "deeponet"}
    short |= {"alone": True, "inference_ms": 1.0}
    short["shifts"] = {"fresh": {"scores": {"rel_l2": {"value": 0.2}}, "samples": {"rel_l2": [0.1, 0.2, None]}}}
    line = changed(short if later else second.to_dict(), steps)
    (folder / "phi41.jsonl").write_text(f"{json.dumps(first.to_dict())}\n{line}\n", encoding="utf-8")
    found = obeys_the_law(lambda: records.read(folder))
    if found is None:
        return
    filled = fill(table, found, seeds=2)
    for format in FORMATS:
        assert isinstance(render(filled, format), str)
    plan.jobs(table.cells(2), found, place / "no-runs")
    for entry in found.values():
        obeys_the_law(lambda entry=entry: records.add(place / "again", entry))
    assert {path.name for path in place.iterdir() if path.suffix == ".jsonl"} == set()


@cases(500)
@given(edits)
def test_damaged_results(place, steps):
    folder = place / "damaged-results"
    folder.mkdir(exist_ok=True)
    lines = "".join(json.dumps(written("fno", dataset(8, 0.0), seed)) + "\n" for seed in range(2))
    (folder / "phi41.jsonl").write_bytes(edited(lines.encode(), steps))
    obeys_the_law(lambda: records.read(folder))


# --- words and fields ---------------------------------------------------------------------------------------------
values = st.one_of(
    hostile_values, st.sampled_from(["1" * 10**6, "1e999999", "-0", "nan", "8,8", "(" * 100, "1_0", "٣"])
)


@cases(700)
@given(st.sampled_from(sorted(EQUATIONS)), st.data())
def test_any_value_for_any_field_of_an_equation(name, data):
    fields = sorted(spec.fields_of(EQUATIONS[name]))
    given_ = data.draw(st.dictionaries(st.sampled_from([*fields, "no such field"]), values, min_size=1, max_size=2))
    built = obeys_the_law(lambda: equation(name, **given_))
    if built is not None:
        assert spec.build(type(built), json.loads(spec.canonical_json(built)), name) == built


@cases(700)
@given(st.sampled_from((TaskSpec, TrainOptions)), st.data())
def test_any_value_for_any_option(cls, data):
    given_ = data.draw(st.dictionaries(st.sampled_from(sorted(spec.fields_of(cls))), values, min_size=1, max_size=2))
    built = obeys_the_law(lambda: spec.build(cls, given_, "x"))
    if isinstance(built, TaskSpec):
        obeys_the_law(lambda: built.rows(20))
        obeys_the_law(lambda: built.setting(equation("phi41")))


@cases(200)
@given(st.lists(st.text(max_size=20), max_size=4), st.text(max_size=8))
def test_any_words(words, key):
    found = obeys_the_law(lambda: spec.parse_overrides([*words, f"{key}=1"]))
    if found is not None:
        obeys_the_law(lambda: sort_overrides("fno", found))
        obeys_the_law(lambda: alternatives("fno", found))


@cases(100)
@given(
    st.recursive(
        st.one_of(st.none(), st.text(), st.integers(), st.floats()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_that_we_write_is_json_that_we_read(value):
    """`loads` refuses nothing that `canonical_json` takes, but for numbers of more than 63 bits and depth."""
    try:
        text = spec.canonical_json(value)
    except ValueError:
        return
    try:
        assert spec.canonical_json(spec.loads(text)) == text
    except ValueError as error:
        assert "63 bits" in str(error) or "nested" in str(error) or "surrogate" in str(error)
