"""Every dataset of the paper's Tables 1 and 2: a row of Table 1 is a product of the choices of Table 2.

The counts are those of Table 1, N_Z = (configurations) x (samples), except for Phi41-L. Where Table 1 does not say
which choices it counts, this is our reading of it, taken from the result tables:
  Phi41     both boundaries; the Haar basis that Table 2 lists besides is a row of its own, beyond the count of 32
  Phi41-L   12,000 samples: Table 1's 10,000 are those for training and validation, and 2,000 are added for the test
  KdV       20 = 16 at 128 points and 4 (Q-Wiener, fixed initial datum) at 256
  NSE       periodic; the Dirichlet sets that Table 2 lists besides are a row of their own, beyond the count of 8
  Phi42     renormalised, both tasks
  KPZ       the text's two couplings
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spdebench.suites.base import Suite, SuiteProblem

Choices = Mapping[str, Sequence[Any]]

J = (32, 64, 128, 256)
TASKS = (0.0, 0.1)  # kappa: fixed initial datum, xi -> u; varying, (u0, xi) -> u
BOUNDARIES = ("periodic", "dirichlet")


@dataclass(frozen=True)
class SuiteRow:
    """Problems of one equation: all combinations of each of the ``choices``, one after the other."""

    name: str
    equation: str
    choices: tuple[Choices, ...]
    n: int = 1200
    counted: bool = True  # in Table 1; else listed by Table 2 only

    def problems(self) -> list[SuiteProblem]:
        return [
            self._problem(dict(zip(each, values, strict=True)))
            for each in self.choices
            for values in itertools.product(*each.values())
        ]

    def _problem(self, fields: Mapping[str, Any]) -> SuiteProblem:
        words = " ".join(f"{key}={value}" for key, value in fields.items())
        return SuiteProblem(
            name=f"{self.name} {words}".strip(), equation=self.equation, fields=fields, n=self.n, group=self.name
        )


PHI41: Choices = {"boundary": BOUNDARIES, "sigma": (0.1, 1.0), "truncation": J, "kappa": TASKS}

ROWS: tuple[SuiteRow, ...] = (
    SuiteRow("Phi41-S", "phi41", (PHI41,)),
    SuiteRow("Phi41-L", "phi41", (PHI41,), n=12000),
    SuiteRow(
        "KdV",
        "kdv",
        (
            {"noise": ("q_wiener", "cylindrical"), "truncation": J, "kappa": TASKS},
            {"noise": ("q_wiener",), "truncation": J, "points": (256,)},
        ),
    ),
    SuiteRow("Wave", "wave", ({"boundary": BOUNDARIES, "truncation": J, "kappa": TASKS},)),
    SuiteRow("NSE", "nse", ({"spectrum": ("paper",), "truncation": J, "kappa": (0.0, 1.0)},)),
    SuiteRow("Phi42", "phi42", ({"renormalisation": ("paper",), "truncation": (2, 8, 32, 64, 128), "kappa": TASKS},)),
    SuiteRow("Phi43", "phi43", ({"renormalisation": ("paper",)},)),
    SuiteRow(
        "KPZ",
        "kpz",
        (
            {
                "renormalisation": ("paper",),
                "coupling": (0.5, 0.05),
                "sigma": (0.1, 1.0),
                "truncation": J,
                "kappa": TASKS,
            },
        ),
    ),
    SuiteRow(
        "Phi41-H", "phi41", ({"basis": ("haar",), "sigma": (1.0,), "truncation": J, "kappa": TASKS},), counted=False
    ),
    SuiteRow(
        "NSE-D",
        "nse",
        ({"spectrum": ("paper",), "boundary": ("dirichlet",), "truncation": J, "kappa": (0.0, 1.0)},),
        counted=False,
    ),
)


PAPER = Suite(
    name="paper",
    title="the datasets of the paper's Tables 1 and 2, edition paper",
    problems=tuple(problem for row in ROWS for problem in row.problems()),
)
