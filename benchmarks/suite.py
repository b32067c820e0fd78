"""Solver time of the whole suite (Tables 1 and 2 of the paper, Phi41-L included), edition paper, measured in full.

    python benchmarks/suite.py [--device cuda] [--out benchmarks/results/suite.csv]

Every configuration is solved for all its samples; what is solved is dropped. Writing is timed beside it, on one thread:
the rate of the native file for one chunk of each row, times its bytes.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch

from spdebench.cli.output import print_table
from spdebench.data import DatasetSpec
from spdebench.data.store import Writer, made_with
from spdebench.errors import FoldingWarning
from spdebench.experiments.suite import SUITE, Row
from spdebench.solvers import Trajectories, simulate


def solve_row(row: Row, device: str) -> dict[str, Any]:
    """Seconds to solve all configurations of a row, and an estimate of the seconds to write them on one thread."""
    total, written, size = 0.0, 0.0, 0
    configurations = row.configurations()
    for configuration in configurations:
        eq, n = configuration.build(), configuration.n
        identity = DatasetSpec(equation=eq, n=n)
        batch = identity.chunk if device == "cpu" else min(n, max(1, (24 << 30) // (2 * identity.sample_bytes)))
        simulate(eq, 0, range(2), device=device)
        start = time.perf_counter()
        for first in range(0, n, batch):
            paths = simulate(eq, 0, range(first, min(n, first + batch)), device=device)
        if device != "cpu":
            torch.cuda.synchronize()
        total += time.perf_counter() - start
        size += n * identity.sample_bytes
        if configuration is configurations[0]:
            written = write_rate(identity, paths)
    return {
        "row": row.name, "configurations": len(configurations), "samples": sum(c.n for c in configurations),
        "solve s": round(total, 2), "GB": round(size / 1e9, 2), "write s (1 thread)": round(size / written, 1),
    }  # fmt: skip


def write_rate(identity: DatasetSpec, paths: Trajectories) -> float:
    """Bytes a second of the native file's writer."""
    arrays = [x[: min(identity.chunk, len(x))].cpu().numpy() for x in (paths.u0, paths.dw, paths.u)]
    shapes = {"u0": identity.shape[1:], "dw": identity.shape, "u": identity.shape}
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        with Writer(
            Path(folder) / "x.parquet", identity.to_dict(), shapes, identity.row_group, made_with("cpu"), threads=1
        ) as out:
            out.write(arrays)
        return sum(a.nbytes for a in arrays) / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", FoldingWarning)
    rows = [solve_row(row, arguments.device) for row in SUITE if row.counted]
    sums = {"row": "all"} | {k: round(sum(r[k] for r in rows), 2) for k in rows[0] if k != "row"}
    print_table([*rows, sums])
    if arguments.out:
        with open(arguments.out, "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows([*rows, sums])


if __name__ == "__main__":
    main()
