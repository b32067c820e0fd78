"""`evaluate`: what it accepts, what it refuses, what it returns and writes."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import torch

from spdebench.errors import UserError
from spdebench.grids import Grid
from spdebench.metrics import DEFAULT, METRICS, PAPER, Metric, Scores, evaluate
from spdebench.metrics.base import Measurement
from speed.metrics import LOOPS, bench

GRID = Grid.unit(8)


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


U, V = noise(6, 5, 8), noise(6, 5, 8, seed=1)


@pytest.mark.parametrize(
    ("v", "u", "options", "line"),
    [
        (V[:, :, :1], U, {}, r"prediction has shape \(6, 5, 1\), truth \(6, 5, 8\)"),
        (V[:1], U, {}, "must have the same shape"),
        (V[..., None], U[..., None], {}, r"expected arrays \(N T X\)"),
        (V[0], U[0], {}, r"expected arrays \(N T X\)"),
        (V[:2], U[:2], {}, "at least 3 samples"),
        (V[:, :, :7], U[:, :, :7], {}, "pass the grid of the arrays"),
        (noise(6, 5, 9), noise(6, 5, 9), {}, "drop the duplicate end point"),
        (V[:0], U[:0], {}, "empty"),
        (V[:, :0], U[:, :0], {}, "empty"),
        (V + 0j, U, {}, "prediction: expected real numbers, got complex128"),
        (V, torch.from_numpy(U) + 0j, {}, "truth: expected real numbers"),
        (V.astype(object), U, {}, "prediction: expected real numbers, got object"),
        (V[:, :1], U[:, :1], {}, "has_t0=False"),
        (V, np.where(np.arange(6)[:, None, None] == 4, np.inf, U), {}, "truth is not finite in sample 4"),
        (V, U, {"times": [0, 1, 2]}, "expected 5 values"),
        (V, U, {"times": [0, 1, 2, 3, 5]}, "increasing values with a uniform step"),
        (V, U, {"metrics": "rel_l3"}, "unknown metric 'rel_l3'; did you mean 'rel_l"),
        (V, U, {"metrics": []}, "no metric was given"),
        (V, U, {"resamples": 10}, "at least 100"),
        (V, U, {"level": 1.5}, "level must lie between 0 and 1"),
        (V, U, {"chunk_bytes": 0}, "chunk_bytes must be positive"),
        (V[:, :1], U[:, :1], {"has_t0": False, "metrics": ["acf"]}, "metric 'acf' needs at least 2 scored frames"),
    ],
)
def test_bad_input_is_one_line(v, u, options, line: str) -> None:
    with pytest.raises(UserError, match=line) as caught:
        evaluate(v, u, GRID, **options)
    assert "\n" not in str(caught.value)


def test_arrays_of_any_kind_give_the_same_scores(tmp_path) -> None:
    expected = evaluate(V, U, GRID, resamples=0).summary()
    np.save(tmp_path / "u.npy", U)
    mapped = np.load(tmp_path / "u.npy", mmap_mode="r")
    kinds = {
        "torch": (torch.from_numpy(V).requires_grad_(), torch.from_numpy(U)),
        "memory map": (V, mapped),
        "list": (V.tolist(), U.tolist()),
        "big-endian": (V.astype(">f8"), U.astype(">f8")),
        "fortran order": (np.asfortranarray(V), U),
        "reversed twice": (V[::-1].copy()[::-1], U),
        "mixed": (torch.from_numpy(V), U),
    }
    for kind, (v, u) in kinds.items():
        assert evaluate(v, u, GRID, resamples=0).summary() == pytest.approx(expected, rel=1e-9), kind
    assert np.array_equal(mapped, U)


def test_integers_and_half_precision_are_read_as_numbers() -> None:
    u = np.arange(6 * 5 * 8).reshape(6, 5, 8) % 7
    half = torch.from_numpy(u).half()
    for v, truth in ((u + 1, u), (half + 1, half)):
        assert evaluate(v, truth, GRID, metrics="mse")["mse"].value == pytest.approx(1.0, rel=1e-12)


def test_groups_names_instances_and_what_does_not_apply() -> None:
    assert tuple(evaluate(V, U, GRID, metrics="paper", resamples=0)) == PAPER
    scores = evaluate(V, U, GRID, resamples=0)
    assert tuple(scores) == DEFAULT and not scores.skipped
    scores = evaluate(V, U, GRID, metrics="all", resamples=0)
    assert set(scores) | set(scores.skipped) == set(METRICS)
    assert set(scores.skipped) == {"boundary", "lp_slope"} and "Dirichlet" in scores.skipped["boundary"]
    short = evaluate(V[:, :2], U[:, :2], GRID, resamples=0)
    assert set(short.skipped) == {"acf", "sigw1"} and "rel_l2" in short
    with pytest.raises(UserError, match="unknown score 'acg'"):
        scores["acg"]


def test_without_t0_all_frames_are_scored() -> None:
    inner = evaluate(V[:, 1:], U[:, 1:], GRID, metrics="paper", has_t0=False, resamples=0)
    assert inner.summary() == evaluate(V, U, GRID, metrics="paper", resamples=0).summary()
    assert inner.settings["dt"] == evaluate(V, U, GRID, metrics="mse").settings["dt"] == 0.25


def test_declaring_a_metric_registers_it() -> None:
    class Largest(Metric, name="test_largest"):
        """max |e|.

        Source: this test.
        """

        def measure(self, pair, *, samples: bool = True) -> Measurement:
            return Measurement(max(float((v - u).abs().max()) for _, v, u in pair.samples()))

    try:
        score = evaluate(U + 2, U, GRID, metrics="test_largest")["test_largest"]
        assert score.value == pytest.approx(2) and score.interval is None
        assert METRICS["test_largest"] is Largest and Largest.formula().startswith("max |e|.")
    finally:
        METRICS._items.pop("test_largest")


def test_scores_survive_json_with_their_infinities() -> None:
    v, u = V.copy(), U.copy()
    v[2, 3, 1] = np.inf
    u[4] = 0
    u[:, 0] = 0
    scores = evaluate(v, u, GRID, metrics=["rel_l2", "mse", "acf", "spectrum", "sigw1"])
    text = scores.to_json()
    json.loads(text, parse_constant=pytest.fail)  # no bare NaN or Infinity
    back = Scores.from_json(text)
    assert back.to_json() == text
    assert back["rel_l2"].value == back["acf"].value == math.inf and math.isnan(back.ic_error)
    np.testing.assert_array_equal(back["rel_l2"].samples, scores["rel_l2"].samples)
    clean = evaluate(V, U, GRID)
    again = Scores.from_json(clean.to_json())
    assert again.summary() == clean.summary() and again["sigw1"].interval == clean["sigw1"].interval
    with pytest.raises(UserError, match="not a record of scores"):
        Scores.from_json("{}")


NOTE = "the interval is corrected for a bias of the value, which lies outside"


def test_scores_print_a_line_a_metric() -> None:
    lines = str(evaluate(V, U, GRID, metrics="paper")).splitlines()
    metrics, notes = lines[: len(PAPER)], lines[len(PAPER) :]
    assert [line.split()[0] for line in metrics] == list(PAPER) and all("[" in line for line in metrics)
    assert [note.partition(": ")[2] for note in notes] in ([], [NOTE])
    row = evaluate(V, U, GRID, metrics="rmse").rows()[0]
    assert row["low"] < row["value"] < row["high"] and row["interval"] == "bca"


def test_the_loops_of_the_benchmark_agree_with_the_metrics() -> None:
    rows = bench(cases=(((12, 6, 8), (8,)), ((12, 6, 4, 4), (4, 4))), repeats=1)
    assert [r["metric"] for r in rows] == [*LOOPS, "all"] * 2
    for row in rows:
        assert row["ratio"] == pytest.approx(row["loop_ms"] / row["ours_ms"])
        if row["metric"] != "all":
            assert row["value"] == pytest.approx(row["loop_value"], rel=1e-4), row["metric"]


MEMORY = """
import sys, threading, time
import numpy as np, torch
from spdebench.grids import Grid
from spdebench.metrics import evaluate

torch.set_num_threads(1)

def anonymous():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 2**20

def watch():
    while True:
        peak[0] = max(peak[0], anonymous())
        time.sleep(0.01)

v, u = (np.load(path, mmap_mode="r") for path in sys.argv[1:])
before = anonymous()
peak = [before]
threading.Thread(target=watch, daemon=True).start()
scores = evaluate(v, u, Grid.unit(17, 3), metrics=["rel_l2", "w12", "acf", "corr"])
print(peak[0] - before, scores["corr"].details["points"])
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_phi43_is_scored_within_one_gibibyte(tmp_path) -> None:
    """180 x 257 frames x 17^3 points, memory-mapped (0.85 GiB each): memory of our own stays below 1 GiB."""
    rng = np.random.default_rng(0)
    paths = [tmp_path / "v.npy", tmp_path / "u.npy"]
    maps = [np.lib.format.open_memmap(p, "w+", np.float32, (180, 257, 17, 17, 17)) for p in paths]
    for n in range(180):
        maps[1][n] = rng.standard_normal((257, 17, 17, 17), dtype=np.float32)
        maps[0][n] = maps[1][n] + 0.1
    del maps
    out = subprocess.run([sys.executable, "-c", MEMORY, *map(str, paths)], capture_output=True, text=True, check=True)
    gibibytes, points = out.stdout.split()
    assert float(gibibytes) < 1 and int(points) == 2048


@pytest.mark.slow
def test_the_papers_metrics_are_four_times_faster_than_loops() -> None:
    ratios = {row["case"]: row["ratio"] for row in bench() if row["metric"] == "all"}
    assert len(ratios) == 2 and min(ratios.values()) >= 4
