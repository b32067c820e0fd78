"""The typed record: written and read back it is the same; what is wrong is one line that names the field."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

from fake_records import dataset, fake_records, record, written
from spdebench.errors import UserError
from spdebench.records import FigureData, MetricValue, PartScores, Record
from spdebench.records import store as records
from spdebench.records.record import LossLog, decode_line
from spdebench.records.times import without_exclusive_time
from spdebench.training.folder import read_record

ROOT = Path(__file__).parents[3]


def through_json(entry: Record) -> Record:
    return Record.from_dict(json.loads(json.dumps(entry.to_dict(), allow_nan=False)))


@pytest.mark.parametrize("entry", [*fake_records().values()][::7], ids=lambda r: r.name)
def test_a_record_is_unchanged_after_writing_and_reading(entry):
    assert through_json(entry) == entry


def test_numbers_that_json_lacks_are_read_back():
    entry = record("fno", dataset(8, 0.0), val="inf", scores={"rel_l2": {"value": None}, "mse": {"value": "-inf"}})
    again = through_json(entry)
    assert again.val == math.inf and math.isnan(again.scores["rel_l2"].value) and again.value("mse") == -math.inf


# --- version 1 ----------------------------------------------------------------------------------------------------
def test_the_first_version_is_migrated():
    old = written("fno", dataset(8, 0.0), alone=True, kept={"log": {"epoch": [1], "train": [0.5], "val": [None]}})
    shift = {"dataset": dataset(16, 0.0).to_dict(), "part": "test", "n": 6, "scores": {"rel_l2": {"value": 0.2}}}
    both = {"J": shift, "mixed": shift | {"dataset": [shift["dataset"]] * 2}, "bare": {"scores": {}}}
    new = Record.from_dict(old | {"shifts": both, "beside": True})
    assert new.exclusive_timing and new.shared_device and new.figure_data.log.epoch == (1,)
    assert (new.parameters, new.real_parameters) == (1234567, 2345678)
    assert [len(new.shifts[label].datasets) for label in both] == [1, 2, 0]
    assert new.to_dict()["version"] == 2 and not {"alone", "beside", "kept", "counts"} & set(new.to_dict())


def test_a_run_folder_of_the_first_version_is_read(tmp_path):
    old = written("fno", dataset(8, 0.0), val=0.25)
    (tmp_path / "record.json").write_text(json.dumps(old))
    found = read_record(tmp_path / "record.json")
    assert found.val == 0.25 and found == Record.from_dict(found.to_dict())
    (tmp_path / "record.json").write_text(json.dumps(old | {"val": []}))
    with pytest.raises(UserError, match=r"record.json is not a run record \(val must be a number, got list\)"):
        read_record(tmp_path / "record.json")


def test_the_committed_records_are_read():
    """All lines of version 1: whole records, and later ones with times, shifts and figure data."""
    lines = [json.loads(line) for path in (ROOT / "results").glob("*.jsonl") for line in path.read_text().splitlines()]
    old = [line for line in lines if line["version"] == 1]
    found = records.read(ROOT / "results")
    assert len(found) == sum("datasets" in line for line in lines) and len(old) >= 650
    for line in old:
        entry = found[line["digest"]]
        if line.get("alone"):
            assert entry.exclusive_timing and entry.inference_ms is not None
        if "kept" in line:
            assert set(entry.figure_data.names) >= set(line["kept"])
        if "datasets" in line:
            assert entry.scores["rel_l2"].value == line["scores"]["rel_l2"]["value"]
            assert entry.samples["rel_l2"] == tuple(line["samples"]["rel_l2"])
            assert entry.shared_device == line.get("beside", False)
            assert entry.parameters == line["counts"]["parameters"]
        assert through_json(entry) == entry


# --- what is wrong ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 3}, "version must be 1 or 2, got 3"),
        ({"version": True}, "version must be 1 or 2, got True"),
        ({"digest": 3}, "digest must be text, got 3"),
        ({"epochs": 1.5}, "epochs must be a whole number, got 1.5"),
        ({"epochs": True}, "epochs must be a whole number, got True"),
        ({"val": "x" * 500}, "val must be a number, got 'xxx"),
        ({"inference_ms": 10**400}, "inference_ms must be a number"),
        ({"datasets": []}, "datasets must name at least one dataset"),
        ({"datasets": [3]}, "datasets must be an object, got 3"),
        ({"datasets": [{"fields": 3}]}, "datasets: fields must be an object"),
        ({"scores": {"rel_l2": 0.1}}, "scores.rel_l2 must be an object, got 0.1"),
        ({"scores": {"rel_l2": {"value": "high"}}}, "scores.rel_l2.value must be a number, got 'high'"),
        ({"samples": {"rel_l2": [None, "a"]}}, "samples.rel_l2 must be a number, got 'a'"),
        ({"shifts": {"J": {"scores": []}}}, "shifts.J.scores must be an object, got list"),
        ({"provenance": {"device": 3}}, "provenance.device must be text, got 3"),
        ({"alone": True, "inference_ms": None}, "inference_ms must be a number where exclusive_timing is true"),
        ({"counts": 3}, "counts must be an object"),
        ({"speed": 3}, "unknown field 'speed'"),
    ],
)
def test_a_wrong_field_is_named_in_one_line(change, said):
    with pytest.raises(UserError) as caught:
        Record.from_dict(written("fno", dataset(8, 0.0)) | change)
    assert str(caught.value).startswith(said) and len(str(caught.value)) < 120


@pytest.mark.parametrize("field", ["digest", "name", "model", "config", "datasets", "task"])
def test_a_missing_field_is_named(field):
    values = written("fno", dataset(8, 0.0))
    del values[field]
    with pytest.raises(UserError, match=f"{field} is missing"):
        Record.from_dict(values)


# --- numbers, additions, times ------------------------------------------------------------------------------------
def test_values_of_parts_and_times_of_a_record():
    entry = record("fno", dataset(8, 0.0), val=0.3, inference_ms=2.0, scores={"rel_l2": {"value": 0.1}, "acf": {}},
                   shifts={"J": {"scores": {"rel_l2": {"value": 0.4}}}})  # fmt: skip
    assert entry.value("rel_l2") == 0.1 and entry.value("rel_l2", "J") == 0.4
    assert entry.value("val") == 0.3 and entry.value("inference_ms") == 2.0
    assert entry.value("rel_l2", "other") is None
    assert math.isnan(entry.value("acf")) and math.isnan(entry.value("corr"))


def test_an_addition_brings_what_is_new_and_changes_nothing_else():
    known = record("fno", dataset(8, 0.0), shifts={"a": {"scores": {"rel_l2": {"value": 0.1}}}}, beside=True)
    assert known.addition_to(known) is None
    scored = {"a": PartScores({"rel_l2": MetricValue(9.0)}), "b": PartScores({"rel_l2": MetricValue(0.2)})}
    log = FigureData(log=LossLog((1,), (0.5,), (0.4,)))
    later = dataclasses.replace(
        known, shifts=scored, figure_data=log, exclusive_timing=True, inference_ms=0.01, val=7.0
    )
    addition = later.addition_to(known)
    times = {"exclusive_timing", "inference_ms", "inference_batch"}
    assert set(addition.to_dict()) == {"version", "digest", "name", "model", "shifts", "figure_data"} | times
    merged = known.with_addition(addition)
    assert (merged.value("rel_l2", "a"), merged.value("rel_l2", "b")) == (0.1, 0.2)
    assert merged.figure_data == log and merged.inference_ms == 0.01 and merged.val == known.val


def test_an_addition_has_the_metrics_that_are_new_on_each_part():
    rel_l2, shifted = {"rel_l2": {"value": 0.1}}, {"a": {"scores": {"rel_l2": {"value": 0.2}}, "n": 6}}
    known = record("fno", dataset(8, 0.0), scores=rel_l2, shifts=shifted)
    more = {"rel_l2": MetricValue(9.0), "hurst": MetricValue(0.5)}
    later = dataclasses.replace(known, scores=more, shifts={"a": dataclasses.replace(known.shifts["a"], scores=more)})
    addition = later.addition_to(known)
    assert set(addition.scores) == set(addition.shifts["a"].scores) == {"hurst"}
    merged = known.with_addition(decode_line(json.loads(json.dumps(addition.to_dict()))))
    assert (merged.value("rel_l2"), merged.value("hurst")) == (0.1, 0.5)
    assert (merged.value("rel_l2", "a"), merged.value("hurst", "a"), merged.shifts["a"].n) == (0.2, 0.5, 6)
    assert later.addition_to(merged) is None


def test_one_run_of_each_kind_is_to_be_timed():
    first, second = (record("fno", dataset(8, 0.0), seed) for seed in range(2))
    other = record("wno", dataset(8, 0.0), alone=True)
    known = {r.digest: r for r in (first, second, other)}
    assert [r.model for r in without_exclusive_time(known.values(), known)] == ["fno"]
