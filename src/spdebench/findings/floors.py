"""Findings about floors: how far the data are from the SPDE, and which published differences lie below that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from spdebench.data.distance import relative
from spdebench.data.identity import from_dict
from spdebench.equations import equation
from spdebench.errors import without_aliasing_warning
from spdebench.findings.base import Finding, Found, Sources, declare
from spdebench.paper.catalogue import TABLES
from spdebench.paper.fill import Group, fill
from spdebench.paper.layout import FINE_REFERENCE
from spdebench.records.summary import MAIN
from spdebench.solvers import simulate

SAMPLES = 16


def floors(given: Sources) -> Found:
    """d = mean |u_paper - u_converged| / |u_converged| on the same noise; a published error e says nothing if e < d."""
    numbers = {}
    for key, sigma in (("a", 0.1), ("b", 1.0)):
        eq = equation("phi41", sigma=sigma, truncation=128, edition="paper")
        with without_aliasing_warning():
            fine = simulate(eq.replace(edition="converged"), 0, range(SAMPLES)).u
            numbers[f"floor_{key}"] = relative(simulate(eq, 0, range(SAMPLES)).u, fine).mean
    rows, totals = [], Counter[str]()
    for table in (t for t in TABLES if t.kind == "table"):
        counts, example = Counter[str](), ""
        for group in fill(table, given.records).groups:
            for column in group.columns:
                found = _below(group, column)
                if found is None:
                    continue
                counts.update(found.counts)
                if len(found.below) > 1 and not example:
                    names = ", ".join(f"{name} {value:g}" for name, value in found.below.items())
                    label = ", ".join(word for word in (group.name, column) if word)
                    example = f"{label}: floor {found.floor:.3g}, {names}"
        if counts["published"]:
            shown = {"published errors": counts["published"], "below the floor": counts["below"]}
            rows.append({"table": table.name, **shown, "two or more below": counts["tied"], "for example": example})
            totals.update(counts)
    return Found(numbers | {key: float(totals[key]) for key in ("published", "below", "tied", "problems")}, rows)


@dataclass(frozen=True)
class _Below:
    """The floor of one column, its published relative L2 errors, and those of them below the floor, best first."""

    floor: float
    published: Mapping[str, float]

    @property
    def below(self) -> dict[str, float]:
        return {n: v for n, v in sorted(self.published.items(), key=lambda pair: pair[1]) if v < self.floor}

    @property
    def counts(self) -> dict[str, int]:
        below = len(self.below)
        return {"published": len(self.published), "below": below, "tied": below > 1, "problems": 1}


def _below(group: Group, column: str) -> _Below | None:
    """None where there is no floor or no published error, or where the noise is aliased on the grid of the data."""
    here = [e for e in group.column(column) if e.cell.metric == MAIN]
    floor = next((e for e in here if e.cell.row == FINE_REFERENCE), None)
    published = {e.cell.row: e.cell.published for e in here if e.cell.published is not None}
    if floor is None or floor.mean is None or not published:
        return None
    identity = from_dict(dict(floor.records[0].datasets[0]))
    return None if identity.equation.aliasing_message() else _Below(floor.mean, published)


declare(
    Finding(
        name="floors",
        title="The best published errors are smaller than the error of the data themselves.",
        sentence="The data of Phi41 differ from the solution on a finer grid and step, for the same noise, by "
        "{floor_a:.4f} at sigma 0.1 and {floor_b:.3f} at sigma 1. In all tables, without the columns whose noise is "
        "aliased, {below:.0f} of {published:.0f} published relative L2 errors lie below the floor of their data, and "
        "on {tied:.0f} of {problems:.0f} problems two or more do: their order says nothing about the SPDE.",
        follows="A model below the floor has fitted the numerical scheme. Print the floor of the data in each column, "
        "call models below it equal, and use edition `converged`, whose floor is smaller, to compare good models. "
        "`spdebench data card FILE` measures the floor of a dataset.",
        uses=("fresh data", "run records", "published numbers"),
        compute=floors,
    )
)
