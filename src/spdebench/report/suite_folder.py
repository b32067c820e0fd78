"""A suite in a folder: dataset files, and for each problem a card, a picture and the rows of its parts.

Dataset files are in the folder itself, where ``table --data`` looks for them; the other files are in a sub-folder with
the name of the suite. Existing files are kept, so that the same call continues after an interruption.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spdebench.data import DatasetSpec, generate, open_dataset, verify
from spdebench.data.verify import Verification
from spdebench.errors import UserError
from spdebench.files import write_text
from spdebench.report.card import card
from spdebench.report.figures.solution import plot_solution
from spdebench.report.style import save
from spdebench.suites import CORE, Suite, SuiteProblem
from spdebench.suites.numbers import measured
from spdebench.tasks import TaskSpec

PICTURE_DPI = 90
NUMBERS = {"floor": "floor", "nonlinearity": "linear", "step": "step"}
"""The numbers of a problem that are printed, and their columns in the file of measured numbers."""
Report = Callable[[str, Path, bool], None]
"""Called after each dataset with problem and part, its file, and whether the file existed already."""


def rows_of(suite: Suite, problems: Sequence[SuiteProblem]) -> list[dict[str, Any]]:
    """One row per problem: its measured numbers, if there are any, and its sizes."""
    out = []
    for problem in problems:
        spec = problem.spec
        known = measured().get(problem.name, {})
        numbers = {title: known.get(key) for title, key in NUMBERS.items()} if suite is CORE else {}
        shape = "x".join(map(str, spec.shape))
        bytes_ = sum(each.n * each.sample_bytes for each in problem.datasets().values())
        out.append(
            {"problem": problem.name, "equation": problem.equation, **numbers}
            | {"J": spec.equation.truncation, "n": spec.n, "T X..": shape, "files": 1 + len(problem.shifts)}
            | {"MB": round(bytes_ / 1e6, 1)}
        )
    return out


def page_rows() -> list[str]:
    """The table of ``docs/core.md``: the measured numbers of the core suite in Markdown; a test compares them."""
    columns = ("floor", "linear", "trees", "step", "mean", "chaos", "lost")
    heads = ("floor", "nonlinearity", "trees", "identifiability", "mean", "chaos", "variance lost")
    lines = [f"| problem | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for problem in CORE.problems:
        known = measured()[problem.name]
        values = [f"{known[c]:.0%}" if c == "lost" else f"{known[c]:.2g}" for c in columns]
        lines.append(f"| `{problem.name}` | {' | '.join(values)} |")
    return lines


def make(
    suite: Suite, problems: Sequence[SuiteProblem], out: Path, *, device: str = "cpu", report: Report | None = None
) -> None:
    """Make the datasets of the problems, and card, picture and split of each."""
    for problem in problems:
        for label, spec in problem.datasets().items():
            existed = (out / spec.file_name).exists()
            path = generate(spec.equation, n=spec.n, seed=spec.seed, chunk=spec.chunk, out=out, device=device)
            if report:
                report(f"{problem.name}, {label}", path, existed)
        describe(suite, problem, out, device)


def describe(suite: Suite, problem: SuiteProblem, out: Path, device: str = "cpu") -> None:
    """Write the card, the picture and the split of a problem whose dataset exists; files that exist stay."""
    folder = out / suite.name
    dataset = open_dataset(out / problem.spec.file_name)
    name = problem.name.replace(" ", "_")
    if not (split := folder / f"{name}.split.json").exists():
        rows = TaskSpec(inputs=problem.build().task, **problem.task).rows(len(dataset))
        write_text(split, json.dumps({part: values.tolist() for part, values in rows.items()}) + "\n")
    if not (image := folder / f"{name}.png").exists():
        save(plot_solution(dataset), image, dpi=PICTURE_DPI)
    if not (text := folder / f"{name}.md").exists():
        write_text(text, card(dataset, device=device))


@dataclass(frozen=True)
class Checked:
    """The verification of a dataset of a suite; ``error`` is the reason if it could not be verified."""

    label: str
    path: Path
    result: Verification | None = None
    error: str = ""

    @property
    def good(self) -> bool:
        return self.result is not None and self.result.good


def check(problems: Sequence[SuiteProblem], folder: Path, device: str = "cpu") -> Iterator[Checked]:
    """Verify every dataset of the problems in a folder, one after the other."""
    for problem in problems:
        for label, spec in problem.datasets().items():
            yield _checked(f"{problem.name}, {label}", spec, folder, device)


def _checked(label: str, spec: DatasetSpec, folder: Path, device: str) -> Checked:
    """Verify one dataset."""
    path = folder / spec.file_name
    if not path.exists():
        return Checked(label, path, error=f"there is no {path.name}")
    try:
        return Checked(label, path, verify(open_dataset(path), device=device))
    except UserError as error:
        return Checked(label, path, error=str(error))
