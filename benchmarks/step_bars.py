"""The bars of the model `step`: its test error on each equation next to the error that it must reach.

    python benchmarks/step_bars.py [--all] [--only kdv] [--factor 0.5] [--data FOLDER] [--device cuda]

Prints one row for each case: test error (relative L2), bar, the plan that was chosen, seconds of the fit and their
ratio to those of `linear` on the same data. Quick cases by default; --all adds those whose data take minutes to make.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import spdebench as sb
from spdebench.errors import AliasingWarning
from spdebench.models.step import StepModel


@dataclass(frozen=True)
class Case:
    """Data, and the error that must be reached."""

    name: str
    n: int
    bar: float
    fields: dict[str, Any] = field(default_factory=dict)
    task: dict[str, Any] = field(default_factory=dict)
    quick: bool = True

    @property
    def label(self) -> str:
        words = [f"{k}={v}" for k, v in (self.fields | self.task).items()]
        return " ".join([self.name, *words, f"n={self.n}"])


CASES = (
    Case("phi41", 1200, 1e-6, {"sigma": 0.1}),
    Case("phi41", 1200, 1e-6, {"sigma": 1.0}),
    Case("phi41", 1200, 1e-6, {"sigma": 1.0, "boundary": "dirichlet"}),
    Case("phi41", 600, 1e-5, {"sigma": 1.0, "edition": "converged"}),
    Case("kpz", 1200, 1e-3, {"sigma": 0.1}),
    Case("kpz", 1200, 1e-3, {"sigma": 1.0}),
    Case("wave", 1200, 0.012),
    Case("kdv", 1200, 1.2e-3),
    Case("phi42", 60, 1e-4, task={"every": 1}),
    Case("phi43", 14, 1e-3, task={"every": 1, "split": "60:20:20"}),
    Case("nse", 120, 5e-4, {"spectrum": "reference"}, quick=False),
    Case("phi42", 240, 1.05 * 0.0346, {"truncation": 32}, quick=False),
    Case("phi42", 240, 1.05 * 0.0652, {"truncation": 64}, quick=False),
    Case("phi42", 240, 1.05 * 0.1221, {"truncation": 128}, quick=False),
    Case("phi43", 120, 1.05 * 0.1135, quick=False),
    Case("phi41", 600, 1e-5, {"sigma": 0.1, "edition": "converged"}, quick=False),
    # The bar 1e-3 was set for the paper's counter-term, once the default. Its drift -C t makes |h| 2.9 times as large
    # as the exact counter-term does, and relative errors smaller: 5.6e-4 was measured, 1.35e-3 with the exact one.
    Case("kpz", 600, 1e-3, {"sigma": 1.0, "edition": "converged", "renormalisation": "paper"}, quick=False),
    Case("kpz", 600, 1.5e-3, {"sigma": 1.0, "edition": "converged"}, quick=False),
)


def measure(case: Case, data: Path, factor: float, device: str) -> str:
    """One row of the table."""
    n = max(14, round(case.n * factor))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AliasingWarning)
        path = sb.generate(sb.equation(case.name, **case.fields), n=n, out=data, allow_aliasing=True)
        task = sb.Task(path, **{"split": "70:15:15"} | case.task)
        linear, run = (sb.train(m, task, out=data / "runs", device=device) for m in ("linear", "step"))
    value, one, other = run.scores["rel_l2"].value, run.record, linear.record
    assert isinstance(run.model, StepModel) and one.training_seconds and other.training_seconds
    assert one.inference_ms and other.inference_ms
    verdict = "reached" if value <= case.bar else "MISSED"
    fits, predictions = one.training_seconds / other.training_seconds, one.inference_ms / other.inference_ms
    times = f"{one.training_seconds:7.1f} {fits:7.1f} {predictions:15.1f}"
    return f"{case.label:<58} {value:9.2e} {case.bar:9.2e} {verdict:<8} {times}  {run.model.plan.label}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="also the cases whose data take minutes to make")
    parser.add_argument("--only", default="", help="words that a case must have, such as 'kdv' or 'sigma=1.0'")
    parser.add_argument("--factor", type=float, default=1.0, help="samples, as a part of each case's own number")
    parser.add_argument("--data", default="", help="folder for datasets and runs; by default a temporary one")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    head = f"{'data':<58} {'test':>9} {'bar':>9} {'':<8} {'fit s':>7} {'/linear':>7} {'predict /linear':>15}  plan"
    print(head, flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for case in CASES:
            if (case.quick or given.all or given.only) and given.only in case.label:
                print(measure(case, Path(given.data or scratch), given.factor, given.device), flush=True)


if __name__ == "__main__":
    main()
