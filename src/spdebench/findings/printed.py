"""Findings about the numbers that the paper prints: printed twice, and the same for two boundary conditions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from spdebench.findings.base import Finding, FindingResult, Sources, declare
from spdebench.paper import published
from spdebench.paper.catalogue import table
from spdebench.paper.fill import fill
from spdebench.paper.filled import Entry
from spdebench.records.summary import MAIN


# --- printed twice ------------------------------------------------------------------------------------------------
def twice(sources: Sources) -> FindingResult:
    """max / min of the numbers printed for one (equation, boundary, noise, sigma, task, J, model) in two tables."""
    keys = ("equation", "boundary", "noise", "sigma", "task", "J", "model")
    groups: dict[tuple[str, ...], dict[str, float]] = {}
    for n in published.numbers():
        whole = not n.columns["train_set"] or n.columns["train_set"] == n.columns["test_set"] == n.columns["J"]
        if n.columns["metric"] == "rel_l2" and whole:
            groups.setdefault(tuple(n.columns[k] for k in keys), {})[n.table] = n.mean
    both = {key: values for key, values in groups.items() if len(values) > 1}
    ratios = {key: max(values.values()) / min(values.values()) for key, values in both.items()}
    apart = sorted((key for key in both if ratios[key] > 1.1), key=lambda key: -ratios[key])
    rows = [
        {
            **dict(zip(("equation", "noise", "task", "J", "model"), (key[0], key[2], *key[4:]), strict=True)),
            "printed": " and ".join(f"{v:g}" for v in both[key].values()),
            "ratio": ratios[key],
        }
        for key in apart
    ]
    return FindingResult({"both": len(both), "apart": len(apart), "largest": max(ratios.values())}, rows)


declare(
    Finding(
        name="printed-twice",
        title="The paper prints different errors for the same model on the same data.",
        sentence="Of {both:.0f} relative L2 errors that appear in two tables, {apart:.0f} differ by more than 10 %, "
        "the largest by a factor of {largest:.0f}.",
        follows="The difference between two tables is far larger than the printed standard deviations. Train several "
        "seeds, state the spread over them, and keep one record from which all tables are computed.",
        uses=("published numbers",),
        compute=twice,
    )
)


# --- boundary conditions ------------------------------------------------------------------------------------------
PLACES = {
    "phi41, sigma 0.1": (("phi41-periodic", "xi -> u"), ("phi41-dirichlet", "xi -> u")),
    "phi41, sigma 1": (("phi41-periodic-sigma1", "xi -> u"), ("phi41-dirichlet-sigma1", "xi -> u")),
    "wave": (("wave-kdv-kpz-nse", "wave: xi -> u"), ("wave-dirichlet", "xi -> u")),
}
"""Data -> table and group of the periodic and of the Dirichlet problem."""

Pair = tuple[Entry, Entry]
"""The errors of one model at one J on periodic and on Dirichlet data."""


def boundaries(sources: Sources) -> FindingResult:
    """Error of a model on periodic data / its error on Dirichlet data, same J: printed, and ours."""
    rows: list[dict[str, object]] = []
    printed: list[float] = []
    medians: dict[tuple[str, str], float] = {}
    for data, places in PLACES.items():
        for model, pairs in _pairs(sources, *places).items():
            printed += _ratios((a.cell.published, b.cell.published) for a, b in pairs)
            if ours := _ratios((a.mean, b.mean) for a, b in pairs):
                medians[data, model] = statistics.median(ours)
            rows.append(
                {
                    "data": data,
                    "model": pairs[0][0].cell.row,
                    "periodic, printed": _listed(a for a, _ in pairs),
                    "Dirichlet, printed": _listed(b for _, b in pairs),
                    "periodic / Dirichlet, ours": medians.get((data, model)),
                }
            )
    numbers = {model: medians.get(("phi41, sigma 0.1", model), math.nan) for model in ("fno", "ncde", "wno")}
    counts = {"pairs": len(printed), "equal": printed.count(1.0)}
    changes = {
        "change": 100 * statistics.median(abs(ratio - 1) for ratio in printed),
        "largest": max(max(ratio, 1 / ratio) for ratio in printed),
    }
    return FindingResult(numbers | counts | changes, rows)


def _pairs(sources: Sources, periodic: tuple[str, str], dirichlet: tuple[str, str]) -> dict[str, list[Pair]]:
    """Pairs of cells with a published relative L2 error, by model."""
    first, second = (
        {
            (e.cell.model, e.cell.column): e
            for e in fill(table(name), sources.records).entries
            if e.cell.group == group and e.cell.metric == MAIN and e.cell.published is not None
        }
        for name, group in (periodic, dirichlet)
    )
    found: dict[str, list[Pair]] = {}
    for key, entry in first.items():
        if key in second:
            found.setdefault(entry.cell.model, []).append((entry, second[key]))
    return found


def _ratios(pairs: Iterable[tuple[float | None, float | None]]) -> list[float]:
    return [first / second for first, second in pairs if first and second]


def _listed(entries: Iterable[Entry]) -> str:
    return " ".join(f"{e.cell.published:.3f}" for e in entries)


declare(
    Finding(
        name="boundaries",
        title="The published errors hardly depend on the boundary condition, although ours do.",
        sentence="For xi -> u the paper prints {pairs:.0f} pairs of errors of the same model at the same J, one for "
        "periodic and one for Dirichlet data. {equal:.0f} of them are equal in all printed digits, and the median "
        "difference is {change:.1f} %; the largest, a factor of {largest:.1f}, are those of NSPDE and of GT at sigma "
        "1. On our data at sigma 0.1 the errors on periodic data are {fno:.2f} (FNO), {ncde:.2f} (NCDE) and "
        "{wno:.2f} (WNO) times those on Dirichlet data. The table shows the printed errors at J = 32, 64, 128 and "
        "256, and the median of our ratios.",
        follows="Both tables were probably computed from data with the same boundary condition. That models are not "
        "sensitive to the boundary condition does not follow from these numbers. Store the boundary condition and a "
        "hash of the data with every result.",
        uses=("run records", "published numbers"),
        compute=boundaries,
    )
)
