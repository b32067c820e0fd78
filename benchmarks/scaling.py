"""Measure how generation scales with the number of workers, and estimate how long all tables take on GPUs.

    python benchmarks/scaling.py [--workers 1,2,3,4] [--chunks 40] [--samples 1024]     measure, then write everything
    python benchmarks/scaling.py --estimate                                           compute only the estimate

The estimate uses measured rates. Writes benchmarks/results/scaling.csv and scaling-suite.csv, docs/scaling.png, and the
tables of docs/scaling.md between their marks. A chunk is one of phi41 as in the paper (128 points, 50 steps), solved
and written to disk.
"""

from __future__ import annotations

import argparse
import csv
import heapq
import os
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import spdebench as sb
from csv_files import write_csv
from spdebench import engines
from spdebench.campaign.rates import SCORING_SECONDS, Rates
from spdebench.data import DatasetSpec
from spdebench.data.generate import _Unit, make_part
from spdebench.files import write_text
from spdebench.models import MODELS
from spdebench.paper.catalogue import TABLES
from spdebench.records import store as records
from spdebench.report.style import BLUE, GREY, ORANGE, new_figure, save, styled
from spdebench.spec import canonical_json
from spdebench.training.solver_row import SOLVER

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "scaling.md"
GPUS = (1, 8, 64)
SEEDS = 3


# --- measured -----------------------------------------------------------------------------------------------------
def measure(engine: str, workers: int, chunks: int, samples: int) -> dict[str, Any]:
    """Chunks a second between the first results and the last, and the seconds until the first.

    The first ``workers`` results end the start; at the end, when workers run out of chunks, the clock stops with the
    last chunk that was started while all were busy.
    """
    identity = DatasetSpec(equation=sb.equation("phi41"), n=chunks * samples, chunk=samples)
    text = canonical_json(identity.to_dict())
    with tempfile.TemporaryDirectory() as folder:
        units = [_Unit(text, index, folder, "cpu") for index in range(chunks)]
        start, stamps = time.perf_counter(), []
        for _ in engines.run(make_part, units, workers, engine=engine):
            stamps.append(time.perf_counter() - start)
    first, last = workers, chunks - workers
    rate = (last - first) / (stamps[last - 1] - stamps[first - 1])
    return {
        "engine": engine,
        "workers": workers,
        "chunks/s": round(rate, 3),
        "start s": round(stamps[0], 2),
        "load": load(),
    }


def measured(workers: Sequence[int], chunks: int, samples: int) -> list[dict[str, Any]]:
    rows = [measure(engine, count, chunks, samples) for engine in ("local", "ray") for count in workers]
    alone = next(row["chunks/s"] for row in rows if row["engine"] == "local" and row["workers"] == min(workers))
    cores = len(os.sched_getaffinity(0))
    return [
        row | {"of ideal": f"{row['chunks/s'] / (alone * min(row['workers'], cores)):.0%}", "cores": cores}
        for row in rows
    ]


def load() -> float:
    """What else runs here, in processes: the system's mean over a minute."""
    return round(os.getloadavg()[0], 1)


@styled
def draw(rows: Sequence[dict[str, Any]]) -> Any:
    """Chunks a second against workers; the ideal line bends where the cores end."""
    most, cores = max(int(r["workers"]) for r in rows), int(rows[0]["cores"])
    figure = new_figure(
        4.6, 3.2, "Chunks per second and number of workers", f"phi41 as in the paper, {cores} cores, solved and written"
    )
    axes = figure.subplots()
    alone = float(next(r["chunks/s"] for r in rows if r["engine"] == "local"))
    counts = range(1, most + 1)
    axes.plot(counts, [alone * min(c, cores) for c in counts], color=GREY, linestyle="--", label="ideal")
    for engine, colour, mark in (("local", BLUE, "o"), ("ray", ORANGE, "s")):
        mine = [r for r in rows if r["engine"] == engine]
        axes.plot(
            [int(r["workers"]) for r in mine],
            [float(r["chunks/s"]) for r in mine],
            color=colour,
            marker=mark,
            label=engine,
        )
    axes.set(xlabel="workers", ylabel="chunks/s", xticks=list(counts))
    axes.set_ylim(bottom=0)
    axes.legend()
    return figure


# --- estimated ----------------------------------------------------------------------------------------------------
def run_seconds() -> list[float]:
    """About how long each run of all tables takes alone on the GPU that the rates were measured on, the longest first,
    as a cluster starts them."""
    rates = Rates(records.read(ROOT / "results"), "cuda")
    seconds: dict[str, float] = {}
    shifts: set[tuple[str, str]] = set()
    for table in TABLES:
        for cell in table.cells(SEEDS):
            for run in cell.runs:
                seconds.setdefault(run.digest, rates.seconds(run))
                if cell.shift is not None and (run.digest, cell.part) not in shifts:
                    shifts.add((run.digest, cell.part))
                    seconds[run.digest] += SCORING_SECONDS
    return sorted(seconds.values(), reverse=True)


def file_seconds() -> list[float]:
    """Seconds to solve and to write (one thread) each file of the suite, from `suite-h200.csv`."""
    with (RESULTS / "suite-h200.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["row"] != "all"]
    each = [
        (float(row["solve s"]) + float(row["write s (1 thread)"])) / int(row["configurations"])
        for row in rows
        for _ in range(int(row["configurations"]))
    ]
    return sorted(each, reverse=True)


def makespan(seconds: Sequence[float], workers: int) -> float:
    """How long it takes if each of so many workers takes the next unit when it is free."""
    free = [0.0] * workers
    for each in seconds:
        heapq.heapreplace(free, free[0] + each)
    return max(free)


def estimate() -> list[dict[str, Any]]:
    files, runs = file_seconds(), run_seconds()
    rows = []
    for count in GPUS:
        data, training = makespan(files, count), makespan(runs, count)
        rows.append(
            {
                "GPUs": count,
                "data": _hours(data),
                "runs": _hours(training),
                "all": _hours(data + training),
                "GPUs busy": f"{(sum(files) + sum(runs)) / (count * (data + training)):.0%}",
            }
        )
    return rows


def facts() -> str:
    """One sentence with the numbers on which the estimate is based."""
    files, runs = file_seconds(), run_seconds()
    trained = [m for m in MODELS if m != SOLVER and MODELS[m].trainable]
    return (
        f"{len(files)} files ({_hours(sum(files))} of work, the longest {_hours(max(files))}) and {len(runs)} runs of "
        f"{len(trained)} models, baselines and the solver, {SEEDS} seeds ({_hours(sum(runs))}, the longest "
        f"{_hours(max(runs))})."
    )


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"


# --- written ------------------------------------------------------------------------------------------------------
def markdown(rows: Sequence[dict[str, Any]]) -> str:
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([str(v) for v in row.values()] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def put(mark: str, text: str) -> None:
    """Replace what stands in the page between ``<!-- mark -->`` and ``<!-- end -->``."""
    page = PAGE.read_text(encoding="utf-8")
    pattern = rf"(<!-- {mark} -->\n).*?(<!-- end -->)"
    new, count = re.subn(pattern, lambda m: f"{m[1]}{text}\n{m[2]}", page, flags=re.S)
    if count != 1:
        raise SystemExit(f"{PAGE} has {count} places for '{mark}', not one")
    write_text(PAGE, new)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="1,2,3,4")
    parser.add_argument("--chunks", type=int, default=40)
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--estimate", action="store_true")
    chosen = parser.parse_args()
    if not chosen.estimate:
        rows = measured([int(w) for w in chosen.workers.split(",")], chosen.chunks, chosen.samples)
        print(markdown(rows))
        write_csv(RESULTS / "scaling.csv", rows)
        save(draw(rows), ROOT / "docs" / "scaling.png")
        put("measured", markdown(rows))
    estimated = estimate()
    print(f"{facts()}\n{markdown(estimated)}")
    write_csv(RESULTS / "scaling-suite.csv", estimated)
    put("estimate", f"{facts()}\n\n{markdown(estimated)}")


if __name__ == "__main__":
    main()
