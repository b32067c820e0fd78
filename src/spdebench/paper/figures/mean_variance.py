"""Phi41 at sigma 1, xi -> u: mean and variance of predictions at steps 25 and 50."""

import dataclasses

from spdebench.paper.base import Table, data
from spdebench.paper.layout import by_metric

TABLE = Table(
    name="mean-variance",
    kind="figure",
    source="fig:model_comparison",
    title="Phi41, periodic, sigma 1, xi -> u: mean and variance over the test part, predicted and true",
    wants=tuple(
        dataclasses.replace(w, figure_data=("moments",))
        for j in (128, 32)
        for w in by_metric(
            data("phi41", sigma=1.0, truncation=j),
            ("dlr-net", "fno", "nspde"),
            group=f"J={j}",
            metrics=("rel_l2", "std_ratio"),
            published=None,
        )
    ),
    draw=("spdebench plot mean-variance",),
    notes=("Drawn from the predictions of the first seed. The caption does not say the boundary; periodic is taken.",),
)
