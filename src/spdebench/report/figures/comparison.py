"""Runs on the same test samples: the error of every sample, and the paired difference of each two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spdebench.metrics import metric_title
from spdebench.report.style import BLUE, GREY, ORANGE, log_axis, new_figure, plain, styled
from spdebench.training.compare_runs import RunComparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def plot_comparison(found: RunComparison) -> Figure:
    """Left: the error of each test sample (dots) and the score with its interval, by run, best on top.

    Right: (A - B) / max(A, B) of the scores of each two runs with its interval; an interval that does not touch 0 is
    blue if the test finds a difference after Holm's correction.
    """
    order = sorted(found.scores, key=lambda label: found.scores[label][found.metric].value, reverse=True)
    lines = max(len(order), len(found.tests))
    title = f"{metric_title(found.metric)} of {len(order)} runs on the same {found.samples} test samples"
    remark = f"{found.data};  left: dots are samples, bars 95 % intervals;  right: blue where a difference was found"
    figure = new_figure(9.0, 1.4 + 0.32 * lines, plain(title, 90), plain(remark, 200))
    left, right = figure.subplots(1, 2, width_ratios=(1, 1))
    values = []
    for place, label in enumerate(order):
        score = found.scores[label][found.metric]
        samples = np.asarray(score.samples)
        samples = samples[np.isfinite(samples)]
        spread = np.random.default_rng(0).uniform(-0.25, 0.25, len(samples))
        left.plot(samples, place + spread, ".", color=GREY, markersize=2, alpha=0.5)
        if score.interval is not None:
            left.plot([score.interval.low, score.interval.high], [place, place], color=ORANGE, linewidth=3)
        left.plot(score.value, place, "o", color=ORANGE, markersize=5)
        values += [*samples.tolist(), score.value]
    left.set_yticks(range(len(order)), [plain(label) for label in order])
    left.set(xlabel=plain(metric_title(found.metric)), ylim=(-0.6, len(order) - 0.4))
    log_axis(left, "x", values)
    for place, test in enumerate(reversed(found.tests)):
        scale = max(found.scores[name][found.metric].value for name in (test.a, test.b)) or 1.0
        colour = GREY if test.better is None else BLUE
        right.plot(np.array([test.interval.low, test.interval.high]) / scale, [place, place], color=colour)
        right.plot(test.difference / scale, place, "o", color=colour, markersize=5)
    right.axvline(0, color=GREY, linewidth=0.7)
    right.set_yticks(range(len(found.tests)), [f"{plain(t.a, 26)} − {plain(t.b, 26)}" for t in reversed(found.tests)])
    right.set(xlabel="difference / larger of the two", ylim=(-0.6, len(found.tests) - 0.4))
    return figure
