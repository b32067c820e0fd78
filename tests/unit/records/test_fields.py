"""Fields in records: what is read back is what was written up to rounding; what is damaged is one line."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import tracemalloc
import zlib

import numpy as np
import pytest

from fake_records import dataset, record
from spdebench.errors import UserError
from spdebench.records import FigureData, Record, store
from spdebench.records.fields import MOST_VALUES, FieldData, PackedFields

SHAPE = (2, 3, 4)


def field(shape=SHAPE, scale=1.0) -> np.ndarray:
    return (scale * np.random.default_rng(0).standard_normal(shape)).astype(np.float32)


@pytest.fixture
def whole() -> Record:
    data = FieldData(7, (5, 10), (0.5, 1.0), {"3 x 4": PackedFields.of(field())})
    return dataclasses.replace(record("fno", dataset(8, 0.0)), figure_data=FigureData(fields=data))


# --- what is kept -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("shape", [(1, 1), (5, 64, 64), (2, 4, 5, 6)])
def test_values_are_kept_within_half_a_step(shape, scale):
    u = field(shape, scale).astype(np.float64)
    found = PackedFields.of(u)
    step = np.abs(u).max() / 32767
    assert np.abs(found.values() - u).max() <= 0.5001 * step < 2**-15 * np.abs(u).max()
    assert found.values().shape == shape and PackedFields.of(found.values()) == found


def test_zeros_and_values_that_are_not_finite():
    assert (PackedFields.of(np.zeros(SHAPE)).values() == 0).all()
    u = field()
    u[0, 0, :3] = np.nan, np.inf, -np.inf
    found, finite = PackedFields.of(u).values(), np.isfinite(u)
    assert (np.isnan(found) == ~finite).all()
    assert np.abs(found - u)[finite].max() <= 2**-15 * np.abs(u[finite]).max()
    assert np.isnan(PackedFields.of(np.full(SHAPE, np.nan)).values()).all()


def test_the_paper_s_fields_take_about_50_kilobytes():
    grids = {f"{n} x {n}": PackedFields.of(field((5, n, n))) for n in (16, 64)}
    assert 40_000 < len(json.dumps([dataclasses.asdict(grid) for grid in grids.values()])) < 62_000


def test_a_record_with_fields_is_unchanged_after_writing_and_reading(whole, tmp_path):
    assert Record.from_dict(json.loads(json.dumps(whole.to_dict(), allow_nan=False))) == whole
    plain = dataclasses.replace(whole, figure_data=FigureData())
    assert [store.add(tmp_path, each) for each in (plain, whole, whole)] == [True, True, False]
    assert store.read(tmp_path)[whole.digest].figure_data == whole.figure_data
    assert whole.figure_data.names == ("fields",) and whole.to_dict()["version"] == 2


# --- what is damaged ----------------------------------------------------------------------------------------------
def packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 9)).decode()


GOOD = bytes(2 * math.prod(SHAPE))


@pytest.mark.parametrize(
    "change",
    [
        {"numbers": ""},
        {"numbers": 3},
        {"numbers": "AAAA"},
        {"numbers": "é" * 8},
        {"numbers": packed(GOOD)[:-5]},
        {"numbers": packed(GOOD) + "AAAA"},
        {"numbers": " " + packed(GOOD)},
        {"numbers": packed(GOOD[:-1])},
        {"numbers": packed(GOOD + b"0")},
        {"numbers": base64.b64encode(zlib.compress(GOOD)[:-1]).decode()},
        {"numbers": base64.b64encode(zlib.compress(GOOD) + b"0").decode()},
        {"scale": 0.0},
        {"scale": -1.0},
        {"scale": "nan"},
        {"scale": "inf"},
        {"scale": 1e305},
        {"scale": None},
        {"shape": []},
        {"shape": [24]},
        {"shape": [2, 3, 5]},
        {"shape": [2, -3, -4]},
        {"shape": [2, 0, 4]},
        {"shape": [2, 3, 4, 1, 1]},
        {"shape": [2, MOST_VALUES]},
        {"shape": [2, 2**62, 2**62]},
        {"shape": [2.0, 3, 4]},
        {"extra": 1},
    ],
    ids=str,
)
def test_damaged_fields_are_refused_in_one_line(whole, change, tmp_path):
    values = whole.to_dict()
    values["figure_data"]["fields"]["grids"]["3 x 4"] |= change
    with pytest.raises(UserError, match="fields") as caught:
        Record.from_dict(values)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 150
    (tmp_path / "phi41.jsonl").write_text(json.dumps(values) + "\n")
    with pytest.raises(UserError, match="line 1, is not a run record"):
        store.read(tmp_path)


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, MOST_VALUES), (1, 1 << 25)])
def test_no_more_is_unpacked_than_the_shape_declares(shape):
    """64 MB in a text of 90 kB."""
    bomb = packed(bytes(1 << 26))
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match="fields"):
            PackedFields(shape, 1.0, bomb)
        assert tracemalloc.get_traced_memory()[1] < 2 * 2 * MOST_VALUES + 10 * len(bomb)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("change", [{"frames": []}, {"frames": [5]}, {"times": [0.5]}, {"grids": {}}, {"row": 0.5}])
def test_fields_that_do_not_fit_their_frames_are_refused(whole, change):
    values = whole.to_dict()
    values["figure_data"]["fields"] |= change
    with pytest.raises(UserError, match="fields"):
        Record.from_dict(values)


def test_every_changed_character_is_noticed(whole):
    """The sum of checks of zlib covers the numbers; another text of the same numbers is no damage."""
    good = whole.figure_data.fields.grids["3 x 4"]
    for place in range(len(good.numbers)):
        for sign in "A+z":
            text = good.numbers[:place] + sign + good.numbers[place + 1 :]
            try:
                found = dataclasses.replace(good, numbers=text)
            except UserError:
                continue
            assert (found.values() == good.values()).all(), (place, sign)
