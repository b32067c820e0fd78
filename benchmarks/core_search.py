"""The search for the regimes of the core suite: parameters -> floor, nonlinearity and other numbers.

    python benchmarks/core_search.py [--equation NAME] [-n 120] [--step] [--out benchmarks/results/core-search.csv]
    python benchmarks/core_search.py --suite [-n 200] --out src/spdebench/suites/core.csv

Without ``--suite`` the candidates below are measured, all combinations of the choices of each equation; with it the
problems of the core suite, whose numbers ``spdebench suite core`` prints. The columns are those of
`spdebench.suites.measure.Difficulty`; ``--step`` fits the model ``step`` too, which takes longest. Rows that the file
has already are kept, so that an interrupted search continues.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import itertools
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from csv_files import write_csv
from spdebench.cli.output import print_table
from spdebench.equations import Equation, equation
from spdebench.errors import AliasingWarning
from spdebench.suites import CORE
from spdebench.suites.measure import measure
from spdebench.suites.numbers import SAMPLES

LINE = {"points": 64, "solve_points": 128, "truncation": 24}
PLANE = {"points": 32, "truncation": 14, "kappa": 1.0}
CANDIDATES: dict[str, tuple[dict[str, Any], dict[str, tuple[Any, ...]]]] = {
    "phi41": (
        LINE | {"substeps": 16},
        {"mass": (0.0, 20.0), "sigma": (1.0, 3.0), "horizon": (0.5, 1.0), "frames": (10,), "kappa": (2.0,)},
    ),
    "kpz": (
        LINE | {"substeps": 64, "renormalisation": "exact", "frames": 20},
        {"coupling": (0.5, 4.0), "sigma": (1.0, 2.0), "horizon": (0.1,), "kappa": (1.0,)},
    ),
    "burgers": (
        LINE | {"substeps": 16, "frames": 20, "horizon": 1.0},
        {"noise": ("cylindrical", "q_wiener"), "viscosity": (0.02,), "sigma": (0.5, 1.0), "kappa": (1.0,)},
    ),
    "allen_cahn": (
        LINE | {"substeps": 32, "frames": 20, "diffusivity": 0.005, "rate": 5.0, "kappa": 2.0},
        {"noise": ("cylindrical", "q_wiener"), "sigma": (1.0, 4.0), "horizon": (1.0,)},
    ),
    "kdv": (
        LINE | {"substeps": 32, "noise": "q_wiener", "horizon": 0.5, "frames": 25},
        {"sigma": (0.1, 0.2, 0.5), "dispersion": (1.0,), "kappa": (0.5,)},
    ),
    "ks": (
        LINE | {"substeps": 16, "frames": 20, "kappa": 1.0},
        {"noise": ("cylindrical",), "sigma": (0.2, 0.5, 1.0), "horizon": (20.0, 50.0)},
    ),
    "phi42": (
        PLANE | {"solve_points": 32, "substeps": 16, "frames": 25, "renormalisation": "exact"},
        {"sigma": (1.0, 4.0, 8.0), "horizon": (0.5,)},
    ),
    "nse": (
        PLANE
        | {"truncation": 16, "solve_points": 64, "substeps": 25, "frames": 20, "spectrum": "reference"}
        | {"scale": 162.0, "storage": "spectral", "viscosity": 1e-3},
        {"sigma": (0.02, 0.05), "forcing": (0.1,), "horizon": (10.0,)},
    ),
}
SAMPLES_2D = 20
"""Samples of an equation in two dimensions, where they cost most."""


def candidates(name: str) -> Iterator[tuple[dict[str, Any], Equation]]:
    """The searched values of an equation, and the equation with them."""
    fixed, choices = CANDIDATES[name]
    for values in itertools.product(*choices.values()):
        chosen = dict(zip(choices, values, strict=True))
        fields = fixed | chosen
        yield chosen, equation(name, edition="converged", steps=fields["frames"], **fields)


def row(eq: Equation, n: int, step: bool) -> dict[str, float]:
    """The numbers of a regime to four digits, and the time that they took."""
    start = time.perf_counter()
    found = dataclasses.asdict(measure(eq, n, step=step))
    return {k: float(f"{v:.4g}") for k, v in {**found, "seconds": time.perf_counter() - start}.items()}


def search(only: str, n: int, step: bool, known: set[str]) -> Iterator[dict[str, Any]]:
    for name in CANDIDATES:
        if only in ("", name):
            for chosen, eq in candidates(name):
                label = " ".join([name, *(f"{k}={v}" for k, v in chosen.items())])
                if label not in known:
                    yield {"problem": label} | row(eq, n if eq.dim == 1 else SAMPLES_2D, step)


def of_suite(n: int, known: set[str]) -> Iterator[dict[str, Any]]:
    for problem in CORE.problems:
        if problem.name not in known:
            found = row(problem.build(), n, True)
            del found["seconds"]
            yield {"problem": problem.name} | found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", action="store_true", help="measure the problems of the core suite")
    parser.add_argument("--equation", default="", choices=["", *CANDIDATES], help="search one equation only")
    parser.add_argument("-n", type=int, help=f"samples of each regime (120; with --suite {SAMPLES})")
    parser.add_argument("--step", action="store_true", help="fit the model step too")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", AliasingWarning)
    rows: list[dict[str, Any]] = []
    if given.out and given.out.exists():
        rows = list(csv.DictReader(given.out.read_text().splitlines()))
    known = {r["problem"] for r in rows}
    if given.n is None:
        given.n = SAMPLES if given.suite else 120
    new = of_suite(given.n, known) if given.suite else search(given.equation, given.n, given.step, known)
    for each in new:
        rows.append(each)
        if given.suite:
            order = [problem.name for problem in CORE.problems]
            rows.sort(key=lambda r: order.index(r["problem"]))
        print_table([each])
        if given.out:
            write_csv(given.out, rows)


if __name__ == "__main__":
    main()
