"""How the paper lays its tables out: models by truncation and task, models by metric; and the rows of honesty.

Every table gets, beside the paper's models, the baselines without a network (mean of the training part, regression on
the linear equation's solution and on its trees), the solver itself, and what a finer solver differs from the data by.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from spdebench.paper.base import Data, Want
from spdebench.paper.published import TITLES
from spdebench.records.record import FINER, INDEPENDENT
from spdebench.tasks import Inputs
from spdebench.training.solver_row import SOLVER

Models = Mapping[Inputs, tuple[str, ...]]
"""Models that a table has, by task."""

J = (32, 64, 128, 256)
BASELINES = ("mean", "linear", "trees")
FIVE = ("rel_l2", "w12_paper", "corr", "acf", "sigw1")
ARROWS = {"xi": "xi -> u", "u0+xi": "(u0, xi) -> u"}
LAWS = ("corr", "acf", "sigw1")

NOTES: Mapping[str, str] = {
    "": "Data: 1200 samples of seed 0, split 70:15:15 by one permutation (3407), unless said otherwise. Ours: mean ± "
    "s.d. over training seeds, their number in brackets; the paper's s.d. is over its five runs on the test set.",
    "trees": "mean: the mean of the training part. linear, trees: linear regression on the solution of the linear "
    "equation, and on its trees of height 2, with the kernel of the data's own scheme.",
    "solver": "solver: the data's own solver, fed with the stored u0 and noise.",
    "finer": "finer: distance of the data to the same paths solved on a finer grid and step; an error below it has "
    "learned the scheme, not the equation.",
    "independent": "independent: another ensemble of the same law; no model can be expected to score below it.",
}
"""Notes that go under every table that has the row; the first under all."""

_BOTH = ("nspde", "dlr-net", "gt")
PHI41: Models = {
    "xi": ("ncde", "nrde", "ncde-fno", "deeponet", "fno", "wno", *_BOTH),
    "u0+xi": ("ncde", "nrde", "ncde-fno", *_BOTH),
}
PHI41_NOTES = (
    "The equation has the drift -u^3 of the paper's text (its code has 3u - u^3). At J = 256 the series folds on the "
    "128 points in edition paper, as it does in the paper's solver.",
    "The paper's times were taken on an RTX 4090 for models and on a processor, sample by sample, for the solver "
    "(2.438 ms); ours on one device at one batch.",
)


def want(model: str, data: Data, inputs: Inputs, **fields: Any) -> Want:
    """A want of a model of the paper: its row is its title, and the paper has the number."""
    fields = {"row": TITLES.get(model, model), "metric": "rel_l2", "published": {}} | fields
    return Want(model=model, data=(data,), inputs=inputs, **fields)


def honest(like: Want) -> list[Want]:
    """The rows that stand beside every model, in the place of ``like``."""
    plain = dataclasses.replace(like, config={}, options={}, published=None, optional=True)
    rows = [dataclasses.replace(plain, model=name, row=name) for name in BASELINES if like.metric != "inference_ms"]
    if like.test is not None and like.test.seed != like.data[0].seed:
        return rows  # fresh samples: the solver stands beside the dataset's own
    alone = dataclasses.replace(plain, model=SOLVER, data=(like.test or like.data[0],), part="test", test=None)
    rows.append(dataclasses.replace(alone, row="solver"))
    if like.metric != "inference_ms":
        rows.append(dataclasses.replace(alone, row="finer", part=FINER))
    if like.metric in LAWS:
        rows.append(dataclasses.replace(alone, row="independent", part=INDEPENDENT))
    return rows


def with_honest(wants: Sequence[Want]) -> tuple[Want, ...]:
    """Wants, and after those of each group its rows of honesty, one for each column."""
    out: list[Want] = []
    for group in dict.fromkeys(w.group for w in wants):
        here = [w for w in wants if w.group == group]
        first = {w.column: w for w in reversed(here)}
        columns = [first[c] for c in dict.fromkeys(w.column for w in here)]
        extra = [h for w in columns for h in honest(w)]
        out += here + sorted(extra, key=lambda w: ORDER.index(w.row))
    return tuple(out)


ORDER = (*BASELINES, "solver", "finer", "independent")


def by_truncation(
    data: Data,
    models: Models,
    *,
    label: str = "",
    kappa: float = 0.1,
    published: Mapping[str, str] | None = {},
    columns: Sequence[int] = J,
) -> tuple[Want, ...]:
    """Relative L2 of models (rows) at truncations J (columns), a group for each task."""
    return tuple(
        want(
            model,
            data.having(truncation=j, kappa=kappa if inputs == "u0+xi" else 0.0),
            inputs,
            group=": ".join(word for word in (label, ARROWS[inputs]) if word),
            column=f"J={j}",
            published=published,
        )
        for inputs, names in models.items()
        for model in names
        for j in columns
    )


def by_metric(
    data: Data,
    models: Sequence[str],
    *,
    group: str,
    metrics: Sequence[str] = FIVE,
    inputs: Inputs = "xi",
    published: Mapping[str, str] | None = {},
) -> tuple[Want, ...]:
    """Metrics (columns) of models (rows) on one dataset."""
    return tuple(
        want(model, data, inputs, group=group, column=metric, metric=metric, published=published)
        for model in models
        for metric in metrics
    )
