"""The paper's figures in small: the same rows and columns, runs of seconds."""

from __future__ import annotations

import dataclasses
from typing import Any

from spdebench.paper.base import Table, Want, data
from spdebench.paper.layout import by_metric, want

PHI41 = data("phi41", points=16, frames=10, steps=10, sigma=1.0, truncation=8, n=40)
PHI42 = data("phi42", points=8, truncation=4, kappa=0.1, n=20, frames=5, steps=20)
NSE = data("nse", points=8, solve_points=16, truncation=8, kappa=1.0, n=20, frames=10, steps=50, horizon=0.5)
CONFIGS: dict[str, dict[str, Any]] = {
    "fno": {"width": 8, "layers": 1, "modes": (4, 4)},
    "deeponet": {"width": 8},
    "gt": {"width": 8, "heads": 2, "layers": 1},
    "nspde": {"hidden": 8, "modes": (4, 4, 4)},
}


def _small(wanted: Want, **fields: Any) -> Want:
    return dataclasses.replace(
        wanted, config=CONFIGS[wanted.model], options={**wanted.options, "epochs": 2}, published=None, **fields
    )


def tiny_radar(models: tuple[str, ...] = ("fno", "deeponet", "gt")) -> Table:
    wants = [
        _small(w)
        for boundary in ("dirichlet", "periodic")
        for w in by_metric(
            PHI41.having(boundary=boundary), models, group=f"{boundary}: xi -> u", metrics=("rel_l2", "mse", "acf")
        )
    ]
    return Table(name="radar", kind="figure", title="Radar in small", source="fig:none", wants=tuple(wants))


def tiny_moments() -> Table:
    wants = [
        _small(w, figure_data=("moments",))
        for j in (8, 4)
        for w in by_metric(PHI41.having(truncation=j), ("fno", "gt"), group=f"J={j}", metrics=("rel_l2",))
    ]
    return Table(name="mean-variance", kind="figure", title="Moments in small", source="fig:none", wants=tuple(wants))


def tiny_losses() -> Table:
    wants = [
        _small(
            want("nspde", PHI42, "u0+xi", group="", row=f"loss {loss}", column=metric, metric=metric,
                 options={} if loss == "rel_l2" else {"loss": loss}),
            figure_data=("log",),
        )
        for loss in ("rel_l2", "w12")
        for metric in ("rel_l2", "w12_paper")
    ]  # fmt: skip
    return Table(name="loss-comparison", kind="figure", title="Losses in small", source="fig:none", wants=tuple(wants))


def tiny_evolution() -> Table:
    finer = {"part": "points=16", "test": NSE.having(points=16)}
    wants = [
        _small(want("nspde", NSE, "u0+xi", group="", column=column), figure_data=("fields",), **more)
        for column, more in (("8 x 8", {}), ("16 x 16", finer))
    ]
    return Table(name="nse-evolution", kind="figure", title="NSE in small", source="fig:none", wants=tuple(wants))
