"""The layouts of the paper's tables (models by truncation and task, or models by metric) and the reference rows.

Besides the paper's models every table has the baselines without a network (the mean of the training part, regression
on the linear equation's solution and on its trees, regression of a frame on the one before), the solver, and the
distance of the data to a more accurate solution.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from spdebench import spec
from spdebench.models import MODELS
from spdebench.models.climatology import Climatology
from spdebench.paper.base import Data, Want
from spdebench.paper.published import title
from spdebench.records.record import FINER, FLOOR, INDEPENDENT, TEST
from spdebench.records.summary import MAIN
from spdebench.tasks import TASK_TEXT, Inputs
from spdebench.training.solver_row import SOLVER

Models = Mapping[Inputs, tuple[str, ...]]
"""The models of a table, by task."""

PAPER_TASK: Mapping[str, Any] = {"split": "70:15:15"}
"""The split of every table of the paper, by one permutation of all samples; committed runs were made with it."""
J = (32, 64, 128, 256)
FIVE = ("rel_l2", "w12_paper", "corr", "acf", "sigw1")
LAWS = ("corr", "acf", "sigw1")
GENERATOR: Mapping[str, Any] = {"kernel": "generator"}
GENERATORS = ", generator's kernel"
"""Configuration of a model that uses the linear part of the scheme that generated the data, and the suffix of its row
name."""
FINE_REFERENCE, INDEPENDENT_ENSEMBLE = "solver vs fine reference", "independent ensemble"
"""Reference rows that come from the solver's record."""
MORE_ACCURATE = (
    "a more accurate solution with the same noise (a finer grid, a scheme of higher order or more time steps)"
)
"""What the data are compared with in the row FINE_REFERENCE: edition converged, or that edition with more steps."""

DATA_NOTE = "Data: {samples} samples of seed {seed}, split {split}, unless said otherwise."
"""Of tables that have no note of their own on their data, which begins with its first word."""
OURS_NOTE = "Ours: mean ± s.d. over training seeds, their number in brackets."
PUBLISHED_NOTE = f"{OURS_NOTE[:-1]}; the paper's s.d. is over its five runs on the test set."
"""Instead of `OURS_NOTE` where the paper has numbers."""
NOTES: Mapping[str, str] = {
    "trees": "mean: the mean of the training data. linear, trees: linear regression on the solution of the linear "
    "equation, or on its trees of height 2 (products and integrals), with the exact kernel of the equation.",
    f"trees{GENERATORS}": "generator's kernel (linear, trees, DLR-Net, NORS): the model uses the linear part of the "
    "numerical scheme that generated the data, which is unknown for real data. Such rows are shown because the "
    "authors' code uses that kernel; they are not ranked.",
    "step": "step: a regression that has no network and is not given the equation: least squares for u at the next "
    "frame, mode by mode, from products of u, its derivatives and the noise. Predictions start from u0.",
    "solver": "solver: the solver that generated the data, with the same input as a model; where the input contains "
    "only sums of increments over several steps, they are divided evenly between these steps.",
    FLOOR: "Three reference errors of each problem. floor: the error of the best possible prediction from the input "
    "(noise that is not part of the input is drawn many times); nonlinearity: the error of linear with the exact "
    "kernel; identifiability: the error of step. Errors within a factor 1.2 of the floor count as equal.",
    FINE_REFERENCE: f"{FINE_REFERENCE}: distance of the data to {MORE_ACCURATE}. A model with a smaller error has "
    "fitted the numerical scheme; the number no longer tells us about the SPDE.",
    INDEPENDENT_ENSEMBLE: f"{INDEPENDENT_ENSEMBLE}: other samples of the same law, the score of a perfect law whose "
    "noise is not that of the data. A model that is given the noise can score below it.",
}
"""Notes under every table that has the row."""

_BOTH = ("nspde", "dlr-net", "gt")
PHI41: Models = {
    "xi": ("ncde", "nrde", "ncde-fno", "deeponet", "fno", "wno", *_BOTH),
    "u0+xi": ("ncde", "nrde", "ncde-fno", *_BOTH),
}
PHI41_NOTES = (
    "The equation has the drift -u^3 of the paper's text (its code has 3u - u^3).",
    "The paper's times were measured on an RTX 4090 for models and on a CPU, sample by sample, for the solver "
    "(2.438 ms); ours on one device at one batch size.",
)


def want(model: str, data: Data, inputs: Inputs, **fields: Any) -> Want:
    """A number of a model: its row is the model's title; `published` is looked up unless it is None.

    Split and kernel are those of the paper's tables unless ``task`` or ``config`` have others.
    """
    fields = {"row": title(model), "metric": "rel_l2", "published": {}} | fields
    fields["task"] = {**PAPER_TASK, **fields.get("task", {})}
    if has_kernel(model):
        fields["config"] = {**GENERATOR, **fields.get("config", {})}
        fields["ranked"] = fields["config"]["kernel"] != GENERATOR["kernel"]
        if not fields["ranked"] and not fields["row"].endswith(GENERATORS):
            fields["row"] += GENERATORS
    return Want(model=model, data=(data,), inputs=inputs, **fields)


def has_kernel(model: str) -> bool:
    """Whether the model's configuration has a kernel, which may be that of the scheme that generated the data."""
    return "kernel" in spec.fields_of(MODELS[model].config_class)


def baselines() -> list[str]:
    """The package's models without training, except `climatology`, whose point prediction is that of `mean`."""
    ours = (m for m in MODELS.values() if m.__module__.startswith("spdebench."))
    return [m.name for m in ours if not m.trainable and m is not Climatology]


def reference_rows(like: Want) -> list[Want]:
    """Baselines and solver in the group and column of ``like``, for its data and metric."""
    plain = dataclasses.replace(
        like, config={}, options={}, published=None, optional=True, ranked=True, learning_rates=()
    )
    timed_only = like.metric == "inference_ms"
    rows = [] if timed_only else [row for name in baselines() for row in _baseline_rows(name, plain)]
    if like.test is not None and like.test.seed != like.data[0].seed:
        return rows  # the test has new samples; the solver is compared on the samples of the dataset only
    solver = dataclasses.replace(plain, model=SOLVER, data=(like.test or like.data[0],), part=TEST, test=None)
    rows.append(dataclasses.replace(solver, row=SOLVER))
    if like.metric == MAIN:
        rows.append(dataclasses.replace(solver, row=FLOOR, part=FLOOR))
    if not timed_only:
        rows.append(dataclasses.replace(solver, row=FINE_REFERENCE, part=FINER))
    if like.metric in LAWS:
        rows.append(dataclasses.replace(solver, row=INDEPENDENT_ENSEMBLE, part=INDEPENDENT))
    return rows


def _baseline_rows(name: str, plain: Want) -> list[Want]:
    """One row; two for a model with a kernel: with that of the equation and with that of the scheme."""
    if not has_kernel(name):
        return [dataclasses.replace(plain, model=name, row=title(name))]
    exact = dataclasses.replace(plain, model=name, row=title(name), config={"kernel": "exact"})
    return [exact, dataclasses.replace(exact, row=title(name) + GENERATORS, config=GENERATOR, ranked=False)]


def with_reference_rows(wants: Sequence[Want]) -> tuple[Want, ...]:
    """The wants, and after those of each group its reference rows in each column."""
    known = [*map(title, baselines())]
    last = (SOLVER, FLOOR, FINE_REFERENCE, INDEPENDENT_ENSEMBLE)
    order = [*known, *(name + GENERATORS for name in known), *last]
    out: list[Want] = []
    for group in dict.fromkeys(w.group for w in wants):
        members = [w for w in wants if w.group == group]
        first = {w.column: w for w in reversed(members)}
        columns = [first[c] for c in dict.fromkeys(w.column for w in members)]
        extra = [row for w in columns for row in reference_rows(w)]
        out += members + sorted(extra, key=lambda w: order.index(w.row))
    return tuple(out)


def by_truncation(
    data: Data,
    models: Models,
    *,
    label: str = "",
    kappa: float = 0.1,
    published: Mapping[str, str] | None = {},
    columns: Sequence[int] = J,
) -> tuple[Want, ...]:
    """The relative L2 error of models (rows) at truncations J (columns), one group for each task."""
    return tuple(
        want(
            model,
            data.having(truncation=j, kappa=kappa if inputs == "u0+xi" else 0.0),
            inputs,
            group=": ".join(word for word in (label, TASK_TEXT[inputs]) if word),
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
