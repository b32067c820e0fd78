"""The native file: round trip, random access, damage, layout versions, workers, resuming."""

from __future__ import annotations

import importlib
import math
import os
import random
import shutil
import threading
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import spdebench as sb
from spdebench.data.writer import Writer
from spdebench.errors import AliasingWarning, UserError
from speed.data import record_transforms

gen = importlib.import_module("spdebench.data.generate")  # the module, which its function hides
TINY = {"points": 16, "truncation": 8, "steps": 10, "frames": 10}


@pytest.fixture
def tiny(tmp_path):
    return sb.generate(sb.equation("phi41", kappa=0.1, **TINY), n=11, seed=3, chunk=4, out=tmp_path)


def test_round_trip_and_conventions(tiny):
    ds = sb.open_dataset(tiny)
    paths = sb.simulate(ds.equation, 3, range(11))
    assert ds.u.shape == ds.dw.shape == (11, 11, 16)
    assert ds.u0.shape == (11, 16)
    assert ds.u.dtype == np.float32
    np.testing.assert_array_equal(ds.u, paths.u.numpy())
    np.testing.assert_array_equal(ds.dw, paths.dw.numpy())
    np.testing.assert_array_equal(ds.u[:, 0], ds.u0)
    assert np.all(ds.dw[:, 0] == 0)
    np.testing.assert_allclose(ds.xi, ds.dw / 0.005, rtol=1e-6)
    assert ds.times[-1] == pytest.approx(0.05)
    again = sb.solve(ds.equation, torch.as_tensor(ds.u0), torch.as_tensor(ds.dw)).numpy()
    np.testing.assert_allclose(again, ds.u, atol=2e-6)


def test_one_sample_without_reading_the_file(tmp_path):
    path = sb.generate(sb.equation("phi41"), n=130, out=tmp_path)
    ds = sb.open_dataset(path)
    groups = pq.ParquetFile(path).metadata.num_row_groups
    assert groups > 3
    seen = []
    original = ds._file.read_row_group
    ds._file.read_row_group = lambda index, **k: seen.append(index) or original(index, **k)
    row = ds.read("u", 70, 71)
    assert len(seen) == 1
    np.testing.assert_array_equal(row[0], ds.u[70])


def test_pandas_reads_it(tiny):
    frame = pd.read_parquet(tiny)
    np.testing.assert_array_equal(np.stack(frame["u"]).reshape(11, 11, 16), sb.open_dataset(tiny).u)


def test_no_time_stamp_and_the_same_bytes_for_any_workers(tiny, tmp_path):
    spec = sb.open_dataset(tiny).spec
    for workers in (1, 2):
        other = tmp_path / f"w{workers}"
        path = sb.generate(spec.equation, n=11, seed=3, chunk=4, out=other, workers=workers)
        assert path.read_bytes() == tiny.read_bytes()
        assert os.listdir(other) == [path.name]


def test_the_same_bytes_for_any_threads(tiny, tmp_path):
    ds = sb.open_dataset(tiny)
    for threads in (1, 2, 7):
        path = tmp_path / f"{threads}.parquet"
        with Writer(path, ds.identity, ds.shapes, 4, ds.made, threads) as writer:
            for start in (0, 4, 8):
                writer.write([ds.read(column, start, start + 4) for column in ("u0", "dw", "u")])
        assert path.read_bytes() == tiny.read_bytes()


@pytest.mark.parametrize("chunks", [1, 3])
def test_an_error_in_a_writing_thread_comes_up_and_leaves_nothing(tiny, tmp_path, monkeypatch, chunks):
    ds = sb.open_dataset(tiny)

    def fails(self, arrays):
        raise pa.ArrowInvalid("cannot encode")

    monkeypatch.setattr(Writer, "_table", fails)
    place = tmp_path / "new"
    with (
        pytest.raises(pa.ArrowInvalid, match="cannot encode"),
        Writer(place / "x.parquet", ds.identity, ds.shapes, 4, ds.made, 2) as writer,
    ):
        for _ in range(chunks):
            writer.write([ds.u0, ds.dw, ds.u])
    assert not list(place.iterdir())
    assert not [t for t in threading.enumerate() if "ThreadPool" in t.name]


def test_a_place_that_cannot_be_written_is_one_line(tiny, tmp_path):
    ds = sb.open_dataset(tiny)
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(UserError, match="cannot write"),
        Writer(tmp_path / "file" / "x.parquet", ds.identity, ds.shapes, 4, ds.made),
    ):
        pass


@pytest.mark.parametrize("name", ["phi41", "kdv", "wave", "kpz"])
@pytest.mark.parametrize("edition", ["paper", "converged"])
def test_another_chunk_size_changes_the_solution_by_rounding_only(name, edition):
    eq = sb.equation(name, edition=edition, kappa=0.1, points=32, truncation=16, substeps=1)
    whole = sb.simulate(eq, 0, range(9), out_dtype=torch.float64)
    parts = [sb.simulate(eq, 0, rows, out_dtype=torch.float64) for rows in (range(2), range(2, 9))]
    for column in ("u0", "dw", "u"):
        one, split = getattr(whole, column), torch.cat([getattr(p, column) for p in parts])
        assert (one - split).abs().max() <= 1e-12 * one.abs().max()
    assert torch.equal(whole.dw, torch.cat([p.dw for p in parts]))


def test_verify_gives_the_same_bits_and_sees_other_numbers(tiny, tmp_path):
    result = sb.verify(sb.open_dataset(tiny), everything=True)
    assert result.good and result.identical == result.solved == 11 and result.chunks == 3
    ds = sb.open_dataset(tiny)
    forged = tmp_path / "forged.parquet"
    with Writer(forged, ds.identity, ds.shapes, 4, ds.made) as writer:
        writer.write([ds.u0, ds.dw, ds.u * 1.01])
    assert not sb.verify(sb.open_dataset(forged)).good


def test_truncated_and_flipped_files_are_refused(tiny, tmp_path):
    """300 random bit flips: each is refused in one line, or the file still verifies to the bit."""
    raw = tiny.read_bytes()
    broken = tmp_path / "broken.parquet"
    for length in (0, 3, 100, len(raw) // 2, len(raw) - 1):
        broken.write_bytes(raw[:length])
        with pytest.raises(UserError, match="not a whole Parquet file"):
            sb.open_dataset(broken)
    generator = random.Random(0)
    refused = 0
    for _ in range(300):
        position, bit = generator.randrange(len(raw)), generator.randrange(8)
        broken.write_bytes(raw[:position] + bytes([raw[position] ^ (1 << bit)]) + raw[position + 1 :])
        try:
            result = sb.verify(sb.open_dataset(broken))
        except UserError as error:
            assert "\n" not in str(error)
            refused += 1
        else:
            assert result.identical == result.solved
    assert refused > 200


def test_another_layout_version_is_refused(tiny, tmp_path):
    ds = sb.open_dataset(tiny)
    other = tmp_path / "other.parquet"
    with Writer(other, {**ds.identity, "layout": 2}, ds.shapes, 4, ds.made) as writer:
        writer.write([ds.u0, ds.dw, ds.u])
    with pytest.raises(UserError, match="layout version 2; this version reads 1"):
        sb.open_dataset(other)


def test_an_interrupted_generation_continues(tmp_path, monkeypatch):
    eq = sb.equation("phi41", **TINY)
    whole = sb.generate(eq, n=20, chunk=4, out=tmp_path / "whole").read_bytes()
    calls = []
    original = gen.make_part

    def stops_after_two(unit):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(unit.index)
        return original(unit)

    monkeypatch.setattr(gen, "make_part", stops_after_two)
    with pytest.raises(KeyboardInterrupt):
        sb.generate(eq, n=20, chunk=4, out=tmp_path / "parts")
    assert not list((tmp_path / "parts").glob("*.parquet"))
    folder = next((tmp_path / "parts").glob(".*.parts"))
    damaged = folder / "chunk-000001.f4"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    fresh = []
    monkeypatch.setattr(gen, "make_part", lambda unit: fresh.append(unit.index) or original(unit))
    path = sb.generate(eq, n=20, chunk=4, out=tmp_path / "parts")
    assert fresh == [1, 2, 3, 4]  # the damaged chunk is made again, the good one is not
    assert path.read_bytes() == whole
    assert os.listdir(tmp_path / "parts") == [path.name]


def test_stopped_while_the_file_is_put_together_and_typed_again(tiny, tmp_path, monkeypatch):
    eq, out = sb.open_dataset(tiny).equation, tmp_path / "again"
    original, calls = Writer.write, []

    def stops_at_the_second(self, arrays):
        if calls:
            raise KeyboardInterrupt
        calls.append(1)
        original(self, arrays)

    monkeypatch.setattr(Writer, "write", stops_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        sb.generate(eq, n=11, seed=3, chunk=4, out=out)
    assert [p.suffix for p in out.iterdir()] == [".parts"]
    monkeypatch.undo()
    assert sb.generate(eq, n=11, seed=3, chunk=4, out=out).read_bytes() == tiny.read_bytes()


def test_too_small_a_disk_and_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    eq = sb.equation("phi41", **TINY)
    monkeypatch.setattr(shutil, "disk_usage", lambda p: shutil._ntuple_diskusage(100, 50, 50))
    with pytest.raises(UserError, match="GB are free"):
        sb.generate(eq, n=20, out=tmp_path / "new")
    assert not (tmp_path / "new").exists()
    monkeypatch.undo()
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write into"):
        sb.generate(eq, n=2, out=tmp_path / "file")


@pytest.mark.parametrize(
    ("changes", "aliased"),
    [
        ({}, False),
        ({"truncation": 256}, True),
        ({"truncation": 256, "edition": "converged"}, False),
        ({"basis": "haar", "truncation": 256}, True),
        ({"boundary": "dirichlet", "truncation": 256}, True),
        ({"boundary": "dirichlet"}, False),
    ],
)
def test_aliasing_is_reported(changes, aliased):
    eq = sb.equation("phi41", **changes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        eq.wiener()
    assert [w.category for w in caught] == ([AliasingWarning] if aliased else [])


def test_data_whose_noise_aliases_are_made_only_if_asked_for(tmp_path):
    aliased = sb.equation("phi41", points=16, truncation=32, frames=5, steps=5)
    message = r"33 fourier functions, the grid 16 points.*\(edition=converged does not\).*--allow-aliasing"
    with pytest.raises(UserError, match=message) as caught:
        sb.generate(aliased, n=2, out=tmp_path / "data")
    assert "\n" not in str(caught.value) and not (tmp_path / "data").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = sb.generate(aliased, n=2, out=tmp_path / "data", allow_aliasing=True)
    assert path.name == sb.DatasetSpec(equation=aliased, n=2).file_name  # the flag is no field of the spec
    assert sb.generate(aliased, n=2, out=tmp_path / "data") == path  # what is there needs no flag
    assert sb.generate(aliased.replace(edition="converged"), n=2, out=tmp_path / "data").exists()


def test_the_floor_counts_the_transforms_that_are_made():
    eq = sb.equation("phi41", points=16, truncation=8)
    calls = record_transforms(lambda: sb.simulate(eq, 0, range(2)))
    fields = sum(count * math.prod(shape[:-1]) for (_, shape, *_), count in calls.items())
    assert fields == 2 * 3 * 50  # forward and back for the step, back for the noise, of which many at once


def test_shapes_that_do_not_fit_the_solver():
    eq = sb.equation("phi41", **TINY)
    with pytest.raises(UserError, match=r"expected u0 \(N, 16\) and dw \(N, 11, 16\)"):
        sb.solve(eq, torch.zeros(2, 16), torch.zeros(2, 7, 16))


def test_non_finite_paths_name_sample_step_and_remedy():
    eq = sb.equation("phi41", **TINY)
    dw = torch.zeros(3, 11, 16, dtype=torch.float64)
    dw[1, 4] = 1e200
    with pytest.raises(UserError, match=r"non-finite at step 5 of 10, sample 1; .* Try steps=40"):
        sb.solve(eq, torch.zeros(3, 16), dw)
