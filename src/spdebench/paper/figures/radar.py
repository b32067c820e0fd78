"""Phi41 at J = 256, sigma 0.1: all metrics of all models, for the radar plots."""

from spdebench.metrics import PAPER
from spdebench.paper.base import Table, data
from spdebench.paper.layout import PHI41, by_metric
from spdebench.tasks import TASK_TEXT

TABLE = Table(
    name="radar",
    kind="figure",
    source="fig:phi41_radar",
    title="Phi41, J = 256, sigma 0.1: models under all metrics, both boundaries, both tasks",
    wants=tuple(
        w
        for boundary in ("dirichlet", "periodic")
        for inputs, names in PHI41.items()
        for w in by_metric(
            data("phi41", boundary=boundary, sigma=0.1, truncation=256, kappa=0.1 if inputs == "u0+xi" else 0.0),
            (*names, "nors"),
            group=f"{boundary}: {TASK_TEXT[inputs]}",
            metrics=PAPER,
            inputs=inputs,
            published=None,
        )
    ),
    draw=("spdebench plot radar",),
    notes=(
        "The caption does not name the models; NORS under periodic boundary is not in the paper's tables.",
        "The paper does not say how its axes are scaled; drawn are logarithms of score / best of the panel. mse is a "
        "square, so that factors count twice on its axis.",
    ),
)
