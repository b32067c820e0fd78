"""Datasets of a law: the seen part of the noise, and members of the conditional law for the test part."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from command_line import call
from spdebench.data import DatasetSpec, generate, open_dataset
from spdebench.data.identity import from_dict
from spdebench.data.verify import verify
from spdebench.engines import memory
from spdebench.equations import equation
from spdebench.errors import UserError
from spdebench.noise import PartialNoise
from spdebench.solvers import seen_noise, simulate
from spdebench.tasks import TaskSpec

SMALL = equation("phi41", points=16, frames=4, steps=4, truncation=8, kappa=0.1, sigma=1.0)


@pytest.fixture(scope="module")
def law(tmp_path_factory):
    folder = tmp_path_factory.mktemp("law")
    return open_dataset(generate(SMALL, n=40, seed=3, seen=4, members=6, chunk=16, out=folder))


def test_the_ordinary_columns_keep_their_bits(law, tmp_path):
    plain = open_dataset(generate(SMALL, n=40, seed=3, chunk=16, out=tmp_path))
    for column in ("u0", "dw", "u"):
        assert np.array_equal(plain.read(column), law.read(column))
    assert list(law.shapes) == ["u0", "dw", "u", "dw_seen"]
    assert np.array_equal(law.dw_seen, seen_noise(SMALL, 3, range(40), 4).numpy())
    with pytest.raises(UserError, match="holds no dw_seen"):
        plain.dw_seen  # noqa: B018
    with pytest.raises(UserError, match="no file of members"):
        plain.members_file  # noqa: B018


def test_members_are_those_of_the_test_part(law):
    """Member 0 is the sample; member m of an input has the stream of m, whatever the chunk."""
    inputs = TaskSpec().rows(40)["test"]
    found = law.members()
    assert found.shape == (6, 6, 5, 16) and np.array_equal(found[:, 0], law.u[inputs])
    for m in (1, 5):
        expected = simulate(SMALL, 3, inputs.tolist(), partial=PartialNoise(4, m)).u.numpy()
        assert np.array_equal(found[:, m], expected)
    assert np.array_equal(law.members(2, 4), found[2:4])


def test_members_that_memory_cannot_hold_are_refused_before_they_are_read(law, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 4 * 6 * 6 * 5 * 16 - 1)
    with pytest.raises(UserError, match=r"6 members for each of 6 inputs: .* GB are free; read fewer inputs at a time"):
        law.members()
    assert law.members(1, 6).shape == (5, 6, 5, 16) and not law.members(6).size
    assert np.array_equal(law.members(-2), law.members(4, 6))


def test_what_needs_samples_refuses_a_file_of_members(law, tmp_path, capsys):
    members = law.members_file
    for read in (lambda: members.dw, lambda: members.u0, lambda: next(members.row_groups("dw"))):
        with pytest.raises(UserError, match="members of a law, of which only u is stored; give the file of samples"):
            read()
    for words in (["data", "card"], ["data", "export"], ["plot", "noise"]):
        assert call(*words, members.path, "--out", tmp_path / "out.png") == 2
        assert "give the file of samples next to it" in capsys.readouterr().err
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    with pytest.raises(UserError, match="has no column v; it has u0, dw, u, dw_seen"):
        law.read("v")


def test_both_files_verify_and_a_changed_member_does_not(law):
    for file in (law, law.members_file):
        done = verify(file, everything=True)
        assert done.good and done.identical == done.solved == len(file)
    assert len(law.members_file) == 30 and list(law.members_file.shapes) == ["u"]


def test_the_spec_of_a_law_is_part_of_its_identity(law):
    spec = law.spec
    assert from_dict(spec.to_dict()) == spec and from_dict(law.members_file.identity).samples_file == spec
    plain = DatasetSpec(equation=SMALL, n=40, seed=3, chunk=16)
    others = [plain, dataclasses.replace(plain, seen=4), dataclasses.replace(plain, seen=2)]
    others += [dataclasses.replace(plain, seen=4, members=m) for m in (2, 6)]
    assert len({each.digest for each in others}) == len({each.file_name for each in others}) == 5
    assert "seen" not in plain.to_dict()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"members": 4}, "say with seen=K"),
        ({"seen": 10}, "between 0 and J=8"),
        ({"seen": 3}, "J is even"),
        ({"seen": -2}, "between 0 and J=8"),
        ({"seen": 4, "members": 0}, "members must be between 1"),
        ({"seen": 4, "members": 4, "n": 1}, "test part"),
        ({"seen": 8, "members": 4}, "with seen=J=8 all of the noise is seen"),
        ({"equation": SMALL.replace(kappa=0.0), "seen": 0, "members": 4}, "all inputs have the same law"),
    ],
)
def test_a_wrong_law_is_one_line_and_makes_nothing(fields, message, tmp_path):
    with pytest.raises(UserError, match=message):
        generate(**{"equation": SMALL, "n": 40, "out": tmp_path / "d", **fields})
    assert not (tmp_path / "d").exists()


def test_on_the_command_line(tmp_path, capsys):
    words = [
        "generate",
        "phi41",
        "points=16",
        "frames=4",
        "steps=4",
        "truncation=8",
        "kappa=0.1",
        "-n",
        "20",
        "--seen",
        "4",
    ]
    assert call(*words, "--members", "5", "--dry-run", "--out", tmp_path) == 0
    assert "12 members, 4 of each of 3 samples, about 3.84 kB" in capsys.readouterr().out
    assert call(*words, "--members", "5", "--dry-run", "--out", tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["members_bytes"] == 12 * 4 * 5 * 16
    assert not list(tmp_path.iterdir())
    assert call(*words, "--members", "5", "--out", tmp_path, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["members_bytes"] > 0 and open_dataset(facts["file"]).members().shape == (3, 5, 5, 16)
    assert call("data", "verify", facts["file"], facts["members_file"]) == 0
    assert call(*words, "--members", "0", "--out", tmp_path) == 2
