"""Solver time of the whole suite (Tables 1 and 2 of the paper, Phi41-L included), edition paper, measured in full.

    python benchmarks/suite.py [--device cuda] [--writing] [--out benchmarks/results/suite.csv]

Every configuration is solved for all its samples; the solutions are not kept. Writing is timed too, on one thread
and on all (row groups are encoded in parallel): the rate of the native file for chunks of the first configuration of
each row, times the row's bytes. With ``--writing`` only the writing is measured.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from csv_files import write_csv
from spdebench.cli.output import print_table
from spdebench.data import DatasetSpec
from spdebench.data.writer import Writer
from spdebench.equations import Equation
from spdebench.errors import AliasingWarning
from spdebench.solvers import simulate
from spdebench.suites.paper import ROWS, SuiteRow
from spdebench.timing import timed
from spdebench.version import made_with

LEAST = 256 << 20
"""Bytes that are written, at least, to measure a rate."""


def measure_row(row: SuiteRow, device: str, solving: bool) -> dict[str, Any]:
    """Seconds to solve all configurations of a row, and an estimate of the seconds to write them."""
    total, size = 0.0, 0
    configurations = row.problems()
    for configuration in configurations:
        eq, n = configuration.build(), configuration.n
        identity = DatasetSpec(equation=eq, n=n)
        size += n * identity.sample_bytes
        if not solving:
            continue
        batch = identity.chunk if device == "cpu" else min(n, max(1, (24 << 30) // (2 * identity.sample_bytes)))
        simulate(eq, 0, range(2), device=device)
        total += timed(partial(solve_all, eq, n, batch, device), device)[1]
    counts = {"row": row.name, "configurations": len(configurations), "samples": sum(c.n for c in configurations)}
    first = configurations[0]
    rates = write_rates(DatasetSpec(equation=first.build(), n=first.n), device)
    writing = {f"write s ({threads} thread{'s' * (threads > 1)})": round(size / r, 1) for threads, r in rates.items()}
    return counts | ({"solve s": round(total, 2)} if solving else {}) | {"GB": round(size / 1e9, 2)} | writing


def solve_all(eq: Equation, n: int, batch: int, device: str) -> None:
    """Solve n samples, a batch at a time, and drop them."""
    for first in range(0, n, batch):
        simulate(eq, 0, range(first, min(n, first + batch)), device=device)


def write_rates(identity: DatasetSpec, device: str) -> dict[int, float]:
    """Bytes a second of the native file's writer by its number of threads."""
    paths = simulate(identity.equation, 0, range(min(identity.n, identity.chunk)), device=device)
    arrays = [x.cpu().numpy() for x in (paths.u0, paths.dw, paths.u)]
    bytes_ = sum(a.nbytes for a in arrays)
    write(identity, arrays, 1, 1)  # warms up
    times = max(2, -(-LEAST // bytes_))
    return {t: times * bytes_ / write(identity, arrays, times, t) for t in dict.fromkeys((1, os.cpu_count() or 1))}


def write(identity: DatasetSpec, arrays: list[np.ndarray], times: int, threads: int) -> float:
    """Seconds to write the arrays one after the other, several times over."""
    shapes = {"u0": identity.shape[1:], "dw": identity.shape, "u": identity.shape}
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        with Writer(
            Path(folder) / "x.parquet",
            identity.to_dict(),
            shapes,
            identity.row_group,
            made_with("cpu"),
            threads=threads,
        ) as out:
            for _ in range(times):
                out.write(arrays)
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--writing", action="store_true", help="measure writing only")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", AliasingWarning)
    rows = [measure_row(row, arguments.device, not arguments.writing) for row in ROWS if row.counted]
    sums = {"row": "all"} | {k: round(sum(r[k] for r in rows), 2) for k in rows[0] if k != "row"}
    print_table([*rows, sums])
    if arguments.out:
        write_csv(arguments.out, [*rows, sums])


if __name__ == "__main__":
    main()
