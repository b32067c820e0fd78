"""`verify` decides: NaN, one changed bit and a changed spec are differences; its rate of detection is its coverage."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

import spdebench as sb
from command_line import call
from spdebench.data.verify import TOLERANCE
from spdebench.data.writer import Writer
from spdebench.errors import UserError
from spdebench.version import made_with, what_differs

gen = importlib.import_module("spdebench.data.generate")  # the module, which its function hides
TINY = sb.equation("phi41", points=16, truncation=8, steps=10, frames=10)
N, CHUNK = 40, 4


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> sb.Dataset:
    return sb.open_dataset(sb.generate(TINY, n=N, chunk=CHUNK, out=tmp_path_factory.mktemp("data")))


def forged(whole: sb.Dataset, path: Path, change=lambda arrays: None, identity=None, **made: str) -> Path:
    """A file with changed values or metadata and right checksums."""
    arrays = [whole.read(column) for column in whole.shapes]
    change(arrays)
    with Writer(path, identity or whole.identity, whole.shapes, CHUNK, whole.made | made) as writer:
        for start in range(0, N, CHUNK):
            writer.write([array[start : start + CHUNK] for array in arrays])
    return path


def last_bit(row: int):
    def change(arrays) -> None:
        arrays[2][row].view(np.uint32)[5, 3] ^= 1

    return change


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_non_finite_value_is_a_difference(whole, tmp_path, capsys, value):
    path = forged(whole, tmp_path / "x.parquet", lambda arrays: arrays[2].fill(value), torch="0.0")
    for words in ([], ["--all"]):
        assert call("data", "verify", str(path), *words) == 1
        assert f"DIFFERENT: {N} samples are not finite" in capsys.readouterr().out


def test_the_same_versions_must_give_the_same_bits_and_others_may_round(whole, tmp_path, capsys):
    assert sb.verify(whole).same_versions and sb.verify(whole, everything=True).good
    path = forged(whole, tmp_path / "same.parquet", last_bit(7))
    assert call("data", "verify", str(path), "--all") == 1
    assert f"{N - 1} to the bit" in (said := capsys.readouterr().out) and "none is allowed" in said
    assert sb.verify(
        sb.open_dataset(forged(whole, tmp_path / "o.parquet", last_bit(7), torch="0")), everything=True
    ).good

    def beyond(arrays) -> None:
        arrays[2][7, 5, 3] += 3 * TOLERANCE * np.abs(arrays[2]).max()

    path = forged(whole, tmp_path / "other.parquet", beyond, torch="0")
    assert call("data", "verify", str(path), "--all") == 1
    assert f"DIFFERENT: {N - 1} to the bit" in (said := capsys.readouterr().out) and "1e-06 is allowed" in said
    assert "it was made with" not in said  # the equation is of this package: no file of a user has changed


@pytest.mark.parametrize("torch", [None, "0.0"])
def test_a_slightly_other_spec_is_a_difference(whole, tmp_path, torch):
    fields = whole.identity["fields"] | {"sigma": 0.100001}
    made = {"torch": torch} if torch else {}
    path = forged(whole, tmp_path / "x.parquet", identity=whole.identity | {"fields": fields}, **made)
    assert call("data", "verify", str(path)) == 1


def test_the_rate_of_detection_is_the_coverage(whole, tmp_path):
    """Of 50 files with one changed bit in a random sample; 3 of 10 chunks are drawn. 3 s.e. of 0.3 are 0.19."""
    rows, found = np.random.default_rng(0).integers(0, N, 50), 0
    for k, row in enumerate(rows):
        path = forged(whole, tmp_path / "x.parquet", last_bit(row))
        result = sb.verify(sb.open_dataset(path), draw=k, progress=False)
        assert result.coverage == 0.3
        found += not result.good
        if k % 25 == 0:
            assert not sb.verify(sb.open_dataset(path), everything=True, progress=False).good
    assert abs(found / 50 - 0.3) < 0.19


def test_which_chunks_are_compared_is_not_known_before(whole, monkeypatch):
    verify = importlib.import_module("spdebench.data.verify")
    drawn: list[int] = []
    monkeypatch.setattr(verify, "_solve_again", lambda ds, rows, device: drawn.append(rows.start) or (len(rows), 0.0))
    for _ in range(30):
        assert sb.verify(whole).good
    assert set(drawn) == set(range(0, N, CHUNK))  # all 10 chunks but with probability 10 * 0.7^30 = 2e-4


# --- versions -------------------------------------------------------------------------------------------------------
def half_made(out: Path, monkeypatch, **other: str) -> None:
    """Two of three chunks made with other versions, then an interrupt."""
    original, calls = gen.make_part, []

    def stops_after_two(unit):
        calls.append(unit)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return original(unit)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(gen, "make_part", stops_after_two)
        patch.setattr(gen, "made_with", lambda *given: made_with(*given) | other)
        sb.generate(TINY, n=12, chunk=4, out=out)


@pytest.mark.parametrize("other", [{"spdebench": "0.0.9"}, {"commit": "0123456789ab"}, {"device": "cuda"}], ids=str)
def test_chunks_of_other_code_are_refused_or_stated(tmp_path, monkeypatch, other):
    half_made(tmp_path, monkeypatch, **other)
    (key, value) = next(iter(other.items()))
    with pytest.raises(
        UserError, match=rf"were made with {key} {value[:10]} \(now .*remove this folder .* or use --force"
    ):
        sb.generate(TINY, n=12, chunk=4, out=tmp_path)
    mixed = sb.open_dataset(sb.generate(TINY, n=12, chunk=4, out=tmp_path, force=True))
    stated = [mixed.made, *mixed.made["also"]]
    assert {each.get(key) for each in stated} == {value, made_with("cpu").get(key)}
    assert not sb.verify(mixed).same_versions


def test_a_cluster_may_have_several_kinds_of_processors(tmp_path, monkeypatch):
    half_made(tmp_path, monkeypatch, cpu="AVX9")
    assert len(sb.open_dataset(sb.generate(TINY, n=12, chunk=4, out=tmp_path)).made["also"]) == 1


def test_what_differs_is_named():
    old = {"spdebench": "0.1.0", "commit": "0123456789abcdef0+", "device": "cuda", "cpu": "AVX2"}
    new = {"spdebench": "0.1.0", "commit": "fedcba9876543210f", "device": "cpu", "cpu": "AVX512"}
    assert what_differs(old, new) == "commit 0123456789+ (now fedcba9876), device cuda (now cpu)"
    assert what_differs(old, old) == "" and what_differs({}, {"torch": "2"}) == "torch not stated (now 2)"
