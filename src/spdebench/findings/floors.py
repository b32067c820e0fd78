"""Finding about the discretisation error of the data and about the floor, the error of the best possible prediction:
which published errors lie below them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from spdebench.data.distance import relative
from spdebench.data.identity import from_dict
from spdebench.equations import equation
from spdebench.errors import without_aliasing_warning
from spdebench.findings.base import Finding, FindingResult, Sources, declare
from spdebench.paper.catalogue import TABLES
from spdebench.paper.fill import fill
from spdebench.paper.filled import Group
from spdebench.paper.layout import FINE_REFERENCE
from spdebench.records.summary import MAIN
from spdebench.solvers import simulate

SAMPLES = 16


def floors(sources: Sources) -> FindingResult:
    """d = mean |u_paper - u_converged| / |u_converged| on the same noise; f = mean |E[u | what is given] - u| / |u|."""
    numbers = {}
    for key, sigma in (("a", 0.1), ("b", 1.0)):
        eq = equation("phi41", sigma=sigma, truncation=128, edition="paper")
        with without_aliasing_warning():
            fine = simulate(eq.replace(edition="converged"), 0, range(SAMPLES)).u
            numbers[f"distance_{key}"] = relative(simulate(eq, 0, range(SAMPLES)).u, fine).mean
    rows, totals = [], Counter[str]()
    for table in (t for t in TABLES if t.kind == "table"):
        counts, example = Counter[str](), ""
        for group in fill(table, sources.records).groups:
            for column in group.columns:
                found = _below(group, column)
                if found is None:
                    continue
                counts.update(found.counts)
                if len(found.below) > 1 and not example:
                    names = ", ".join(f"{name} {value:g}" for name, value in found.below.items())
                    label = ", ".join(word for word in (group.name, column) if word)
                    example = f"{label}: distance {found.distance:.3g}, {names}"
        if counts["published"]:
            shown = {"published errors": counts["published"], "below the discretisation error": counts["below"]}
            shown |= {"problems with two or more such": counts["tied"], "below the floor": counts["impossible"]}
            rows.append({"table": table.name, **shown, "for example": example})
            totals.update(counts)
    counted = ("published", "below", "tied", "problems", "impossible")
    return FindingResult(numbers | {key: float(totals[key]) for key in counted}, rows)


@dataclass(frozen=True)
class _Below:
    """One column: the discretisation error of its data, its floor if known, and its published relative L2 errors."""

    distance: float
    floor: float | None
    published: Mapping[str, float]

    @property
    def below(self) -> dict[str, float]:
        """Published errors that are smaller than the discretisation error, best first."""
        return {n: v for n, v in sorted(self.published.items(), key=lambda pair: pair[1]) if v < self.distance}

    @property
    def counts(self) -> dict[str, int]:
        below, impossible = len(self.below), sum(v < (self.floor or 0.0) for v in self.published.values())
        return {
            "published": len(self.published), "below": below, "tied": below > 1, "problems": 1, "impossible": impossible
        }  # fmt: skip


def _below(group: Group, column: str) -> _Below | None:
    """None where nothing is known or published, or where the noise is aliased on the grid of the data."""
    here = [e for e in group.column(column) if e.cell.metric == MAIN]
    distance = next((e for e in here if e.cell.row == FINE_REFERENCE), None)
    published = {e.cell.row: e.cell.published for e in here if e.cell.published is not None}
    if distance is None or distance.mean is None or not published:
        return None
    identity = from_dict(dict(distance.records[0].datasets[0]))
    if identity.equation.aliasing_message():
        return None
    return _Below(distance.mean, group.numbers(column).floor, published)


declare(
    Finding(
        name="floors",
        title="Many published errors are smaller than the discretisation error of the data, and some are smaller "
        "than the best possible error.",
        sentence="For the same noise, the data of Phi41 differ from the solution on a finer grid and time step by "
        "{distance_a:.4f} at sigma 0.1 and {distance_b:.3f} at sigma 1. In all tables, without the columns "
        "with aliased noise, {below:.0f} of {published:.0f} published relative L2 errors are smaller than "
        "this discretisation error of their data. On {tied:.0f} of {problems:.0f} problems two or more are "
        "smaller, so their order says nothing about the SPDE. {impossible:.0f} are smaller than the floor, "
        "the error of the best possible prediction from the given input; there the published data or "
        "targets must be different from ours (for NSE: the noise of the code).",
        follows="A model with an error below the discretisation error has fitted the numerical scheme. Print floor "
        "and discretisation error in each column. Do not rank models whose errors are within a factor 1.2 of "
        "the floor or below the discretisation error, and use edition `converged` to compare good models. "
        "`spdebench data card FILE` measures both numbers for a dataset.",
        uses=("fresh data", "run records", "published numbers"),
        compute=floors,
    )
)
