"""Test error of `step` on problems of the core suite, on data of several seeds.

    python benchmarks/step_seeds.py [--only ks,phi41] [--seeds 0,1,2,3] [--n 1200] [--data FOLDER] [--out FILE]

Nothing is random in `step` itself, but its search was improved while looking at errors on the test parts of seeds 0
and 1. Errors on data of other seeds that are not larger show that this did not fit the search to these data.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import spdebench as sb
from csv_files import write_csv
from spdebench.models.step import StepModel
from spdebench.suites import CORE

ONE_DIMENSION = "phi41,kpz,burgers,allen_cahn,kdv,ks"


def test_error(problem: str, seed: int, n: int, folder: Path) -> tuple[float, str]:
    """The test error of `step` on data of a seed, and the plan that it chose."""
    (chosen,) = CORE.choose(problem)
    with tempfile.TemporaryDirectory() as runs:
        task = sb.Task(sb.generate(chosen.build(), n=n, seed=seed, out=folder), **chosen.task)
        run = sb.train("step", task, out=runs)
        assert isinstance(run.model, StepModel)
        return run.scores["rel_l2"].value, run.model.plan.label


def main() -> None:
    """One row for each problem and seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=ONE_DIMENSION)
    parser.add_argument("--seeds", default="0,1,2,3")
    parser.add_argument("--n", type=int, default=1200)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for problem in args.only.split(","):
            for seed in map(int, args.seeds.split(",")):
                error, plan = test_error(problem, seed, args.n, args.data or Path(temporary))
                row = {"problem": problem, "seed": seed, "samples": args.n, "test error": f"{error:.3g}", "plan": plan}
                rows.append(row)
                print(*rows[-1].values(), sep=", ", flush=True)
    if args.out:
        write_csv(args.out, rows)


if __name__ == "__main__":
    main()
