"""Five metrics on the non-singular equations at J = 256, xi -> u, and the error on 500 fresh samples."""

import dataclasses

from spdebench.paper.base import Data, Table, Want, data
from spdebench.paper.layout import by_metric, want, with_reference_rows

SETS = {
    "wave": (data("wave", truncation=256), ("fno", "nspde", "gt")),
    "KdV, Q-Wiener": (data("kdv", noise="q_wiener", points=128, truncation=256), ("fno", "nspde", "gt")),
    "NSE": (data("nse", spectrum="paper", truncation=256), ("fno", "nspde", "dlr-net", "gt")),
}


def fresh(model: str, group: str, own: Data) -> Want:
    """The same model on samples of another seed."""
    other = dataclasses.replace(own, n=500, seed=1)
    return want(model, own, "xi", group=group, column="rel_l2 fresh", part="fresh", test=other, published=None)


TABLE = Table(
    name="metrics-regular",
    source="tab:eval_metrics_models",
    title="Five metrics on wave, KdV and NSE at J = 256, xi -> u",
    wants=with_reference_rows(
        tuple(
            w
            for group, (own, models) in SETS.items()
            for w in (*by_metric(own, models, group=group), *(fresh(m, group, own) for m in models))
        )
    ),
    notes=(
        "w12_paper, corr, acf and sigw1 are defined as in the paper's appendix and computed on the whole test "
        "part at once.",
        "rel_l2 fresh: 500 samples of seed 1, a check that the paper's text describes without numbers.",
        "KdV: 128 points.",
    ),
)
