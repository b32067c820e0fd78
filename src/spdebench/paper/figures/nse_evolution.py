"""NSE at J = 256, (u0, xi) -> u: trained on 16 x 16 points, shown there and on the 64 x 64 that are solved on."""

from spdebench.paper.base import Table, data
from spdebench.paper.layout import want

NSE = data("nse", spectrum="paper", truncation=256, kappa=1.0)

TABLE = Table(
    name="nse-evolution",
    kind="figure",
    source="fig:NSE",
    title="NSE, J = 256, (u0, xi) -> u: NSPDE trained on 16 x 16 points, evaluated there and on 64 x 64",
    wants=(
        want("nspde", NSE, "u0+xi", group="", column="16 x 16", published=None, figure_data=("fields",)),
        want(
            "nspde",
            NSE,
            "u0+xi",
            group="",
            column="64 x 64",
            part="points=64 solve_points=64",
            test=NSE.having(points=64, solve_points=64),
            published=None,
            figure_data=("fields",),
        ),
    ),
    draw=("spdebench plot nse-evolution",),
    notes=("Both grids show the same paths: every fourth point of the 64 x 64 that are solved on, or all of them.",),
    edition="paper",
)
