"""How good the estimates of campaigns are: measured over estimated seconds of all recorded runs, and rates from them.

    python benchmarks/estimates.py            median, quartiles and extremes by device and model
    python benchmarks/estimates.py --write    also fit the CUDA rows of campaign/rates.csv to the records again; rows
                                              of a model and equation without records stay

Each estimate is made without the record of the run itself. The epochs that the run took, and the number of runs that
shared its device, are taken from the records.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from spdebench.campaign.rates import Rates
from spdebench.display import aligned
from spdebench.records import Records, store

ROOT = Path(__file__).resolve().parents[1]
RATES = ROOT / "src" / "spdebench" / "campaign" / "rates.csv"


def ratios(records: Records, device: str) -> dict[str, list[float]]:
    """Measured over estimated seconds of the runs of a kind of device, by model and in all."""
    rates = Rates(records, device)
    found: dict[str, list[float]] = defaultdict(list)
    for record in records.values():
        if not (record.provenance.device or "").startswith(device):
            continue
        if (ratio := rates.measured_over_estimated(record)) is not None:
            for name in ("all", "trained" if record.epochs else "not trained", record.model):
                found[name].append(ratio)
    return dict(found)


def rows(records: Records) -> list[dict[str, Any]]:
    out = []
    for device in ("cuda", "cpu"):
        for name, values in ratios(records, device).items():
            low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
            beyond = sum(not 0.5 <= value <= 2 for value in values) / len(values)
            out.append(
                {"device": device, "runs of": name, "runs": len(values), "lower quartile": f"{low:.2f}"}
                | {"median": f"{middle:.2f}", "upper quartile": f"{high:.2f}", "beyond 2": f"{100 * beyond:.0f} %"}
            )
    return out


def fitted(records: Records) -> list[list[str]]:
    """CUDA rows of rates.csv: the median rate of each model and equation, for a million numbers."""
    known = Rates(records, "cuda").by_equation()
    return [[model, equation, "cuda", f"{rate:.4g}", "1", ""] for (model, equation), rate in sorted(known.items())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    records = store.read(ROOT / "results")
    if given.write:
        header, *old = list(csv.reader(RATES.read_text(encoding="utf-8").splitlines()))
        new = fitted(records)
        known = {tuple(row[:3]) for row in new}
        with RATES.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(
                [header, *new, *(row for row in old if tuple(row[:3]) not in known)]
            )
    print("\n".join(aligned(rows(records))))


if __name__ == "__main__":
    main()
