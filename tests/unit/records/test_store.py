"""Records: appended whole, once, by any number of processes; what is wrong with them is one line."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource

import pytest

from spdebench.errors import UserError
from spdebench.records import Record
from spdebench.records import store as records


def record(digest: str = "a" * 10, **changes) -> Record:
    return Record.from_dict(written(digest, **changes))


def written(digest: str = "a" * 10, **changes) -> dict:
    """As version 1 wrote it."""
    fields = {"points": 16, "boundary": "periodic"}
    return {
        "version": 1,
        "digest": digest,
        "name": f"fno-phi41-{digest}",
        "model": "fno",
        "config": {"width": 4},
        "datasets": [{"equation": "phi41", "fields": fields}],
        "task": {"inputs": "xi", "every": 1, "stride": 1},
        "scores": {"rel_l2": {"value": 0.5}},
        "shifts": {},
        "inference_ms": 2.0,
        "provenance": {"device": "cpu"},
        **changes,
    }


def test_written_once_and_read_back(tmp_path):
    assert records.read(tmp_path / "none") == {}
    assert records.add(tmp_path / "r", record())
    assert not records.add(tmp_path / "r", record(scores={}))  # the same run again
    assert records.add(tmp_path / "r", record("b" * 10))
    found = records.read(tmp_path / "r")
    assert list(found) == ["a" * 10, "b" * 10]
    assert found["a" * 10] == record()
    text = (tmp_path / "r" / "phi41.jsonl").read_text()
    assert [list(json.loads(line)) == sorted(json.loads(line)) for line in text.splitlines()] == [True, True]


def test_later_shifts_and_times_are_merged(tmp_path):
    records.add(tmp_path, record())
    shift = {"scores": {"rel_l2": {"value": 0.7}}}
    assert records.add(tmp_path, record(shifts={"J": shift}))
    assert not records.add(tmp_path, record(shifts={"J": {"scores": {}}}))
    assert records.add(tmp_path, record(alone=True, inference_ms=1.0))
    assert records.add(tmp_path, record("b" * 10))
    assert records.add(tmp_path, record("c" * 10, config={"width": 8}))
    lines = (tmp_path / "phi41.jsonl").read_text().splitlines()
    assert len(lines) == 5 and len(lines[1]) < len(lines[0])
    found = records.read(tmp_path)
    assert found["a" * 10].shifts["J"].scores["rel_l2"].value == 0.7
    # a time taken alone stands for all runs of its kind, and for no other
    assert [found[d * 10].inference_ms for d in "abc"] == [1.0, 1.0, 2.0]


def test_a_later_line_without_its_record_is_left_alone(tmp_path):
    records.add(tmp_path, record())
    records.add(tmp_path, record(shifts={"J": {}}))
    path = tmp_path / "phi41.jsonl"
    path.write_text(path.read_text().splitlines()[1] + "\n")
    assert records.read(tmp_path) == {}
    assert records.add(tmp_path, record())
    assert list(records.read(tmp_path)) == ["a" * 10]


def test_numbers_that_json_lacks(tmp_path):
    records.add(tmp_path, record(val=float("inf")))
    assert records.read(tmp_path)["a" * 10].val == float("inf")


@pytest.mark.parametrize(
    "line",
    [
        *("{", "[]", "3", '{"digest":"x","version":7}', '{"version":1}', "\x00"),
        '{"digest":"x","version":1,"datasets":3}',
        json.dumps(written("b" * 10, datasets=[])),
        json.dumps(written("b" * 10, datasets=["x"])),
        json.dumps(written("b" * 10, task=None)),
        json.dumps(written("b" * 10, shifts=[1])),
    ],
)
def test_a_bad_line_is_named(tmp_path, line):
    records.add(tmp_path, record())
    with (tmp_path / "phi41.jsonl").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(UserError, match=r"phi41.jsonl, line 2, is not a run record"):
        records.read(tmp_path)


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    records.add(tmp_path, record())
    before = (tmp_path / "phi41.jsonl").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"No space left on device.*the run is kept in its folder"):
        records.add(tmp_path, record("b" * 10))
    assert (tmp_path / "phi41.jsonl").read_bytes() == before


def test_a_disk_that_is_full_after_half_a_line_leaves_the_file_as_it_was(tmp_path):
    """Nothing of the other half is written when the file is closed."""
    records.add(tmp_path, record())
    before = (tmp_path / "phi41.jsonl").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 4096, hard))
    try:
        with pytest.raises(UserError, match="the run is kept in its folder"):
            records.add(tmp_path, record("b" * 10, config={"width": "4" * 6000}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "phi41.jsonl").read_bytes() == before


def test_a_line_cut_short_does_not_spoil_the_next(tmp_path):
    path = tmp_path / "phi41.jsonl"
    path.write_text(json.dumps(written()))  # no end of line
    records.add(tmp_path, record("b" * 10))
    assert len(records.read(tmp_path)) == 2


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="choose another with --results"):
        records.check_writable(tmp_path / "file" / "results")
    with pytest.raises(UserError, match="the run is kept in its folder"):
        records.add(tmp_path / "file" / "results", record())


def _add_some(folder: str, first: int) -> None:
    for k in range(first, first + 20):
        records.add(folder, record(f"{k:010d}"))


def test_processes_do_not_spoil_each_other(tmp_path):
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_add_some, args=(str(tmp_path), first)) for first in (0, 10, 15)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    lines = (tmp_path / "phi41.jsonl").read_text().splitlines()
    assert len(lines) == 35 and len(records.read(tmp_path)) == 35


def test_the_beginning_of_a_line_is_not_read_and_not_left(tmp_path):
    """A writer is at it, or was killed: nobody fails over it, and the next record takes its place."""
    records.add(tmp_path, record("a" * 10))
    path = tmp_path / "phi41.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    assert list(records.read(tmp_path)) == ["a" * 10]
    assert records.add(tmp_path, record("b" * 10))
    assert path.read_bytes().startswith(whole) and set(records.read(tmp_path)) == {"a" * 10, "b" * 10}
    assert path.read_bytes().count(b"\n") == 2
