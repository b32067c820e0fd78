"""How to add a metric: the error of the largest value of a sample. It needs one class in one file.

On the command line:  spdebench --with examples/own_metric.py evaluate RUN --truth DATA --metrics rel_l2,peak
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import spdebench as sb
from spdebench.metrics import Measurement, Metric, Pair


@dataclass(frozen=True)
class Peak(Metric, name="peak"):
    """(1/N) sum_n | max_{i,j} V - max_{i,j} U |: the error of the largest value, averaged over samples."""

    def measure(self, pair: Pair, *, samples: bool = True) -> Measurement:
        peaks = [(v.flatten(1).amax(1) - u.flatten(1).amax(1)).abs().cpu().numpy() for _, v, u in pair.samples()]
        each = np.concatenate(peaks)  # with one value per sample, `evaluate` computes the interval
        return Measurement(float(each.mean()), each)


if __name__ == "__main__":
    truth = np.random.default_rng(0).normal(size=(50, 20, 16)).cumsum(1)
    print(sb.evaluate(truth * 0.9, truth, sb.Grid.unit(16), metrics=["rel_l2", "peak"]))
