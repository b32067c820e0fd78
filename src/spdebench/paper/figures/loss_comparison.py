"""Phi42 at J = 64: NSPDE trained with the relative L2 and with the Sobolev loss."""

from spdebench.paper.base import Table, data
from spdebench.paper.layout import FIVE, want

TABLE = Table(
    name="loss-comparison",
    kind="figure",
    source="fig:Lp_Hs_comparison",
    title="Phi42, J = 64, (u0, xi) -> u: NSPDE trained with the relative L2 and the W12 loss",
    wants=tuple(
        want(
            "nspde",
            data("phi42", renormalisation="paper", truncation=64, kappa=0.1),
            "u0+xi",
            group="",
            row=f"NSPDE, loss {loss}",
            column=metric,
            metric=metric,
            options={} if loss == "rel_l2" else {"loss": loss},
            published=None,
            figure_data=("log",),
        )
        for loss in ("rel_l2", "w12")
        for metric in FIVE
    ),
    draw=("spdebench plot loss-comparison",),
    notes=(
        "The caption says J = 64 and the text J = 128; 64 is taken, and the task of the noise-level table.",
        "The curves are those of the runs' logs.",
    ),
)
