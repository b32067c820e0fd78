"""The core suite: models by problem, on the test part and on shifted data; ours, with no published numbers.

Every configuration and option is written out. Networks are those of the paper, with the sizes of one dimension and of
two; all are trained alike. The learning rate of a model on a problem is the best of `LEARNING_RATES` on validation,
each tried for `PILOT_EPOCHS` epochs with seed 0; these pilots have records like any run.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from spdebench.models import MODELS
from spdebench.paper.base import PILOT_EPOCHS, Data, Table, Want, data
from spdebench.paper.layout import FINE_REFERENCE
from spdebench.paper.published import title
from spdebench.records.record import FINER, FLOOR, TEST
from spdebench.suites import CORE, SuiteProblem
from spdebench.tasks import Setting, TaskSpec
from spdebench.training.solver_row import SOLVER

EPOCHS = 300
OPTIONS: Mapping[str, Any] = {
    "epochs": EPOCHS,
    "batch_size": 20,
    "learning_rate": 1e-3,
    "weight_decay": 1e-4,
    "scheduler": "cosine",
    "plateau_patience": 50,
    "decay_factor": 0.1,
    "decay_every": 50,
    "min_learning_rate": 1e-6,
    "early_stop_patience": 0,
    "early_stop_delta": 0.0,
    "clip_norm": 1.0,
    "loss": "rel_l2",
    "precision": "float32",
    "compile": False,
}
LEARNING_RATES = (3e-4, 1e-3, 3e-3)
EXACT: Mapping[str, Any] = {"kernel": "exact", "degree": 7.5}
BASELINES: Mapping[str, Mapping[str, Any]] = {
    "mean": {},
    "linear": {**EXACT, "height": 1, "ridge": 1e-12},
    "trees": {**EXACT, "height": 2, "ridge": 1e-12},
    "step": {"rows": 50_000, "stages": 3, "history": 3},
}
NETWORKS: Mapping[str, Mapping[str, Any]] = {
    "fno": {"width": 32, "layers": 4, "modes": (24, 12), "padding": 6, "form": "default"},
    "nspde": {"hidden": 32, "picard": 3, "modes": (48, 24), "padding": 0, "form": "default"},
    "dlr-net": {
        **EXACT,
        "height": 2,
        "width": 16,
        "layers": 4,
        "modes": (24, 12),
        "padding": 6,
        "form": "default",
        "latent": 32,
    },
    "deeponet": {"width": 512, "branch_depth": 3, "trunk_depth": 3},
    "ncde-fno": {"hidden": 32, "width": 128, "space_modes": 24, "solver": "rk4", "form": "default"},
    "gt": {"width": 32, "heads": 4, "layers": 3, "hidden": 128, "form": "default"},
    "wno": {"width": 64, "layers": 4, "level": 2, "wavelet": "db6", "padding": 6, "form": "default"},
}
"""Sizes of the networks; ``modes`` are those of one space axis and of time, and are reduced to what fits the grid."""
ROWS: Mapping[str, Mapping[str, Any]] = {**BASELINES, **NETWORKS}


def config(model: str, setting: Setting) -> dict[str, Any]:
    """The configuration of a row for data of this setting, with ``modes`` for each axis."""
    values = dict(ROWS[model])
    top = MODELS[model].largest_modes(setting)
    if top is not None:
        space, time = values["modes"]
        values["modes"] = tuple(min(a, b) for a, b in zip((*(space,) * setting.dim, time), top, strict=True))
    return values


def source(problem: SuiteProblem, fields: Mapping[str, Any], n: int, seed: int) -> Data:
    """A dataset of the problem; its edition is the table's."""
    given = {key: value for key, value in {**problem.fields, **fields}.items() if key != "edition"}
    return data(problem.equation, n=n, seed=seed, **given)


def numbers(problem: SuiteProblem) -> Iterator[Want]:
    """Every row of a problem on its test part and on each of its shifts that the model supports."""
    own = source(problem, {}, problem.n, problem.seed)
    setting = TaskSpec(inputs="u0+xi", **problem.task).setting(problem.build())
    parts = {TEST: None, **{s.label: source(problem, s.fields, s.n, s.seed) for s in problem.shifts}}
    not_given = {s.label for s in problem.shifts if "sigma" in s.fields}  # a model gets xi and not sigma xi
    common: dict[str, Any] = {
        "group": problem.name,
        "metric": "rel_l2",
        "inputs": "u0+xi",
        "task": problem.task,
        "published": None,
        "optional": True,
    }
    for model in ROWS:
        chosen: dict[str, Any] = {"config": config(model, setting)}
        if model in NETWORKS:
            chosen |= {"options": OPTIONS, "learning_rates": LEARNING_RATES}
        for label, other in parts.items():
            place: dict[str, Any] = {"row": title(model), "column": label, "part": label}
            ranked = label not in not_given
            yield Want(model=model, data=(own,), test=other, ranked=ranked, **place, **chosen, **common)
    for row, part in ((SOLVER, TEST), (FLOOR, FLOOR), (FINE_REFERENCE, FINER)):
        for label, other in parts.items():
            yield Want(row=row, column=label, model=SOLVER, data=(other or own,), part=part, **common)


TABLE = Table(
    name="core",
    source="not in the paper",
    title="The core suite, (u0, xi) -> u: relative L2 on the test part and on shifted data",
    wants=tuple(want for problem in CORE.problems for want in numbers(problem)),
    leaderboard=True,
    edition="converged",
    notes=(
        "Data: edition converged, noise constant on stored intervals, 1200 samples of seed 0 in blocks of 20 (14 for "
        "training, 3 for validation and 3 for the test). 'spdebench suite core' prints the problems.",
        "linear, trees and DLR-Net use the exact kernel of the linear part of the equation.",
        f"Networks: {EPOCHS} epochs of Adam with batches of 20 and a cosine schedule, one configuration per model for "
        "all problems. Weights and learning rate are selected by validation error; the learning rate is one of "
        f"{', '.join(f'{rate:g}' for rate in LEARNING_RATES)}, selected after {PILOT_EPOCHS} epochs with seed 0. The "
        "effort is the same for each model and problem.",
        "sigma x2, u0 x2 (its random part), J x2, grid x2: the samples of the test part with the same realisation of "
        "the noise, for models trained on the original problem. horizon x2: twice the horizon with new noise. A cell "
        "is missing if a model works only on its own grid or for its own number of frames.",
        "sigma x2 does not test a model: the input is xi and not sigma xi, so it is the same as in the test part. The "
        "error is about the distance between the solutions with sigma and with 2 sigma, and no model is marked as the "
        "best there.",
    ),
)
