"""Every configuration of the paper's Tables 1 and 2, in both editions: is each of its trajectories finite?

    python benchmarks/finite.py [--device cuda] [-n 1200] [--only kdv] [--out benchmarks/finite.csv]

Prints, and writes as CSV, one row per configuration and edition: max|u| over n samples, and the seconds it took.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from csv_files import write_csv
from spdebench.data import DatasetSpec
from spdebench.engines import keep_freed_memory
from spdebench.errors import AliasingWarning, UserError
from spdebench.solvers import simulate
from spdebench.suites import PAPER


def check(n: int, device: str, only: str) -> Iterator[dict[str, Any]]:
    """One row for each distinct equation spec of the suite and each edition."""
    seen = set()
    for entry in PAPER.problems:
        if only and entry.equation != only:
            continue
        for edition in ("paper", "converged"):
            eq = entry.build().replace(edition=edition)
            if eq in seen:
                continue
            seen.add(eq)
            identity = DatasetSpec(equation=eq, n=n)
            size = identity.chunk if device == "cpu" else max(1, min(n, (8 << 30) // (40 * identity.sample_bytes)))
            start, largest, problem = time.perf_counter(), 0.0, ""
            try:
                for first in range(0, n, size):
                    u = simulate(eq, 0, range(first, min(n, first + size)), device=device).u
                    largest = max(largest, float(u.abs().max()))
            except UserError as error:
                problem = str(error)
            yield {
                "row": entry.group,
                "equation": eq.name,
                "edition": edition,
                "boundary": eq.boundary,
                "noise": eq.noise,
                "basis": eq.basis,
                "J": eq.truncation,
                "sigma": eq.sigma,
                "kappa": eq.kappa,
                "points": eq.points,
                "n": n,
                "max|u|": round(largest, 4),
                "finite": not problem,
                "seconds": round(time.perf_counter() - start, 2),
                "problem": problem,
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("-n", type=int, default=1200)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    warnings.simplefilter("ignore", AliasingWarning)
    rows = []
    for row in check(arguments.n, arguments.device, arguments.only):
        rows.append(row)
        print(*row.values(), sep=" ", flush=True)
    if arguments.out and rows:
        write_csv(arguments.out, rows)
    bad = [r for r in rows if not r["finite"]]
    print(f"{len(rows)} configurations, {len(bad)} with a non-finite trajectory")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
