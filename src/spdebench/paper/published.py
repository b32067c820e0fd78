"""The numbers that the paper prints, one line each (`published.csv`)."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from spdebench.equations import Equation
from spdebench.models import MODELS
from spdebench.tasks import TASK_TEXT, Inputs

COLUMNS = ("equation", "boundary", "noise", "sigma", "task", "J", "train_set", "test_set", "model", "metric")
"""The columns that identify a number within a table."""

METRICS = {"w12_paper": "w12", "inference_ms": "time_ms", "val": "val_rel_l2"}
"""The name of a metric in the csv, by our name, if they differ."""


def title(model: str) -> str:
    """The name of a model, or of the solver, in tables."""
    return MODELS[model].title if model in MODELS else model


@dataclass(frozen=True)
class Published:
    """One published number: its line in the file, the paper's label of its table, mean and (where printed) s.d."""

    line: int
    table: str
    columns: Mapping[str, str]
    mean: float
    std: float | None


@cache
def numbers() -> tuple[Published, ...]:
    """All published numbers, in the order of the file."""
    text = (resources.files("spdebench.paper") / "published.csv").read_text(encoding="utf-8")
    return tuple(
        Published(
            line,
            row["table"],
            {key: row[key] for key in COLUMNS},
            float(row["mean"]),
            float(row["std"]) if row["std"] else None,
        )
        for line, row in enumerate(csv.DictReader(text.splitlines()), start=2)
    )


@cache
def _index() -> dict[tuple[str, ...], tuple[Published, ...]]:
    """The published numbers by table and columns."""
    found: dict[tuple[str, ...], tuple[Published, ...]] = {}
    for number in numbers():
        key = (number.table, *(number.columns[c] for c in COLUMNS))
        found[key] = (*found.get(key, ()), number)
    return found


def find(table: str, columns: Mapping[str, str]) -> tuple[Published, ...]:
    """The numbers of a table with these columns; two if the paper prints a number twice."""
    return _index().get((table, *(columns[c] for c in COLUMNS)), ())


def columns_of(equation: Equation, inputs: Inputs, model: str, metric: str) -> dict[str, str]:
    """The columns of a number in the csv; a table overrides those that the paper names differently."""
    noise = equation.noise.replace("_", "-") + ("-haar" if equation.basis == "haar" else "")
    return {
        "equation": equation.name,
        "boundary": equation.boundary,
        "noise": noise,
        "sigma": f"{equation.sigma:g}",
        "task": TASK_TEXT[inputs].replace(" ", ""),
        "J": str(equation.truncation),
        "train_set": "",
        "test_set": "",
        "model": title(model),
        "metric": METRICS.get(metric, metric),
    }
