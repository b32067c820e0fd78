"""The command printed for a record makes the same run again: it gives the same hash."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

import pytest

from spdebench import spec
from spdebench.data.identity import from_dict
from spdebench.records import store
from spdebench.training.identity import plan
from spdebench.training.overrides import sort_overrides
from spdebench.training.solver_row import SOLVER
from spdebench.training.train_command import train_command

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def committed():
    return {digest: each for digest, each in store.read(ROOT / "results").items() if each.model != SOLVER}


@pytest.mark.parametrize("name", ["phi41", "nse", "kdv"])
def test_the_command_of_a_committed_record_gives_its_hash(name, committed):
    of_equation = [(digest, record) for digest, record in committed.items() if record.file_name == f"{name}.jsonl"]
    for digest, record in of_equation[::7]:
        words = shlex.split(train_command(record) or "")
        assert words[:3] == ["spdebench", "train", record.model]
        files = [word for word in words if word.endswith(".parquet")]
        data = [from_dict(dict(each)) for each in record.datasets]
        assert files == [f"data/{each.file_name}" for each in data]
        request = sort_overrides(record.model, spec.parse_overrides(w for w in words if "=" in w and w not in files))
        inputs = {"inputs": words[words.index("--inputs") + 1]} if "--inputs" in words else {}
        again = plan(record.model, data, request.task | inputs, request.config, request.options)
        assert again.digest == digest


def test_a_run_that_no_command_makes_has_none(committed):
    record = next(r for r in committed.values() if r.model == "fno")
    assert train_command(record)
    assert train_command(dataclasses.replace(record, initial="0123")) is None
    assert train_command(dataclasses.replace(record, model="somebody's")) is None
    assert train_command(dataclasses.replace(record, datasets=({"published": {}},))) is None
