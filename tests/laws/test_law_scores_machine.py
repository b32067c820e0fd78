"""Scores of laws at full size: the memory that they take, and the same numbers on a GPU."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from spdebench.grids import Grid
from spdebench.metrics.law import law_scores

FULL_SIZE = """
import numpy as np
from spdebench.engines import peak_memory
from spdebench.grids import Grid
from spdebench.metrics import law_scores

rng = np.random.default_rng(0)
shape = (180, 64, 51, 128)
prediction, truth = (rng.standard_normal(shape, dtype=np.float32) for _ in range(2))
grid = Grid((128,), (0.0,), (1.0,), "periodic")
print(law_scores(prediction, truth, grid, resamples=100)["energy_distance"].value, peak_memory())
"""


@pytest.mark.slow
def test_the_test_part_of_a_dataset_is_scored_in_less_than_two_gibibytes():
    """180 inputs, 64 members and 64 truths of 50 x 128 points: the two arrays take 0.56 GiB, all together < 2 GiB."""
    done = subprocess.run([sys.executable, "-c", FULL_SIZE], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    distance, peak = map(float, done.stdout.split())
    assert abs(distance) < 1e-3  # two ensembles of one law
    assert peak < 2 << 30


@pytest.mark.gpu
def test_scores_on_a_gpu_are_those_of_the_cpu():
    rng = np.random.default_rng(0)
    grid = Grid((16, 16), (0.0, 0.0), (1.0, 1.0), "periodic")
    arrays = [torch.from_numpy(rng.standard_normal((12, m, 6, 16, 16), dtype=np.float32)) for m in (64, 20)]
    here = law_scores(*arrays, grid, resamples=100)
    there = law_scores(*(a.cuda() for a in arrays), grid, resamples=100)
    assert set(here) == set(there)
    for name, score in here.items():
        assert there[name].value == pytest.approx(score.value, rel=1e-9), name
    assert there["rank_chi2"].details == here["rank_chi2"].details
