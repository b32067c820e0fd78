"""Counts of published numbers that have a run, comparisons of ours with them, and comparisons of networks with
regressions."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spdebench.models import MODELS
from spdebench.paper import published
from spdebench.paper.comparison import VERDICTS, PublishedComparison
from spdebench.paper.filled import Entry, Filled
from spdebench.paper.layout import baselines, has_kernel
from spdebench.paper.published import title
from spdebench.records.summary import MAIN, at_floor, leaders
from spdebench.report.markup import md_table, paragraph

SEEDS = 3


def trained(entry: Entry) -> bool:
    return entry.cell.model in MODELS and MODELS[entry.cell.model].trainable


def coverage(
    tables: Sequence[Filled],
    found: Mapping[str, list[PublishedComparison]],
    figures: Sequence[Filled],
    why: Sequence[str] = (),
) -> list[str]:
    """Blocks of Markdown: counts in sentences, ``why`` numbers differ, then tables and figures with what they have."""
    every = [s for compared in found.values() for s in compared]
    wanted = len(published.numbers())
    header = ["table", "in the paper", "filled", *(f"{k} seed{'s' * (k > 1)}" for k in range(1, SEEDS + 1)), "above"]
    rows = [_covered(f, found[f.table.name]) for f in tables if any(e.cell.published_keys for e in f.entries)]
    whole = [sum(int(row[k]) for row in rows) for k in range(3, 4 + SEEDS)]
    rows.append(["**all**", "", f"**{len(every)} / {wanted}**", *map(str, whole)])
    drawable = [f"{sum(e.drawable for e in f.entries)} / {len(f.entries)}" for f in figures]
    drawn = [[f"`{f.table.name}`", f"`{f.table.source}`", n] for f, n in zip(figures, drawable, strict=True)]
    return [
        "\n".join(paragraph(line) for line in _counted(every, wanted)),
        *why,
        md_table(header, rows),
        "Figures that need runs (cells whose records have all that the figure shows / all cells):",
        md_table(["figure", "in the paper", "filled"], drawn),
        *(["\n".join(map(paragraph, lines))] if (lines := _regression_counts(tables)) else []),
    ]


def _counted(every: Sequence[PublishedComparison], wanted: int) -> list[str]:
    """Sentences that count the published numbers with a run of ours, and how the two compare."""
    lines = [
        f"**{len(every)} of the {wanted} published numbers have a run of ours**, "
        f"{sum(1 for s in every if not s.entry.missing)} of them with all {SEEDS} seeds."
    ]
    if not every:
        return lines
    times, far = sum(not s.compared for s in every), sum(s.far_below for s in every)
    above = Counter(s.verdict for s in every if s.above)
    silent, partly, _ = (above[name] for name in VERDICTS)
    lines.append(
        f"{len(every) - times - above.total()} lie at or below the published mean + 2 s.d. ({far} of them below a "
        f"quarter of the mean); {above.total()} lie above it, {silent} of them unexplained and {partly} explained in "
        f"part. {times} are inference times, which were measured on other devices and are not compared."
    )
    main = [s for s in every if s.entry.cell.metric == MAIN]
    if ratios := [r for s in main if (r := s.entry.ratio) is not None and 0 < r < math.inf]:
        lines.append(
            f"Of the {len(main)} relative L2 errors, {sum(not s.above for s in main)} lie at or below; the geometric "
            f"mean of ours / published is {statistics.geometric_mean(ratios):.2g}."
        )
    return lines


def _covered(filled: Filled, found: Sequence[PublishedComparison]) -> list[str]:
    """The row of one table: how many of its published numbers have runs, by number of seeds, and how many are above."""
    keys = sum(1 for e in filled.entries if e.cell.published_keys)
    seeds = Counter(min(s.entry.seeds_done, SEEDS) for s in found)
    above = sum(s.above for s in found)
    counts = [str(seeds[k]) for k in range(1, SEEDS + 1)]
    return [f"`{filled.table.name}`", f"`{filled.table.source}`", f"{len(found)} / {keys}", *counts, str(above)]


# --- networks and regressions -------------------------------------------------------------------------------------
@dataclass
class _Problem:
    """Data and task: errors of trained models by run, and of regressions; the floor, if it is known."""

    equation: str
    floor: float | None = None
    networks: dict[tuple[str, ...], float] = field(default_factory=dict)
    regressions: list[float] = field(default_factory=list)

    @property
    def regression_wins(self) -> bool:
        """Whether a regression has a smaller error than every network, and its error is above the floor."""
        means = {"regression": min(self.regressions), "network": min(self.networks.values())}
        return not self.solved and leaders(means, MAIN, self.floor) == ["regression"]

    @property
    def solved(self) -> bool:
        """Whether a regression is at the floor."""
        return at_floor(min(self.regressions), self.floor)


def _regression_counts(tables: Sequence[Filled]) -> list[str]:
    """Sentences on how many problems have a regression with a smaller error than every trained model of any table."""
    regressions = {title(name) for name in baselines() if has_kernel(name)}
    problems: dict[tuple[str, ...], _Problem] = {}
    for group in (g for f in tables for g in f.groups):
        for column in group.columns:
            ranked = [e for e in group.column(column) if e.cell.ranked]
            filled = [e for e in ranked if e.mean is not None and math.isfinite(e.mean) and e.cell.metric == MAIN]
            tested = [e for e in filled if e.cell.part == "test"]
            plain = [e for e in tested if e.cell.row in regressions]
            if not plain:
                continue
            key = tuple(d for e in plain for d in e.digests)
            problem = problems.setdefault(key, _Problem(str(plain[0].cell.runs[0].datasets[0]["equation"])))
            problem.floor = group.numbers(column).floor if problem.floor is None else problem.floor
            problem.regressions += [e.mean for e in plain if e.mean is not None]
            problem.networks |= {e.digests: e.mean for e in tested if trained(e) and e.mean is not None}
    known = [p for p in problems.values() if p.networks]
    if not known:
        return []
    counts = []
    for equation in dict.fromkeys(p.equation for p in known):
        of_equation = [p for p in known if p.equation == equation]
        one_network = sum(p.regression_wins and len(p.networks) == 1 for p in of_equation)
        single = f" ({one_network} with one network only)" if one_network else ""
        counts.append(f"{equation} {sum(p.regression_wins for p in of_equation)} of {len(of_equation)}{single}")
    solved = Counter(p.equation for p in known if p.solved)
    equal = sum(p.solved and at_floor(min(p.networks.values()), p.floor) for p in known)
    level = ", ".join(f"{equation} {number}" for equation, number in solved.items())
    lines = [
        "Regression without a network (`linear` or `trees`, with the exact kernel) has a smaller error than every "
        f"trained model on {sum(p.regression_wins for p in known)} of {len(known)} problems (data and task): "
        f"{', '.join(counts)}.",
        "Rows of `linear`, `trees`, DLR-Net and NORS with the generator's kernel are not counted: they use the linear "
        "part of the numerical scheme that generated the data, which is unknown for real data.",
    ]
    if solved:
        lines.append(
            f"On {solved.total()} of the {len(known)} problems ({level}) the error of the regression is within a "
            "factor 1.2 of the floor, the smallest possible error for the given input, so no model can be better; on "
            f"{equal} of these problems the error of a trained model is at the floor too."
        )
    return lines
