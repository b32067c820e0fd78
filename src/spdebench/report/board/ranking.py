"""From runs to ranked rows.

The best of a problem is, for each metric, the row whose mean is nearest to the metric's ideal value. The solver, the
true law, models that are given the kernel of the data's scheme, and short runs that tried a learning rate are shown,
but do not compete. Laws are ranked by the energy score, which orders the models of a problem as their skill does. A
problem on which no network was trained has no ranks and no best row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from spdebench.records.summary import gap, leaders, ranked
from spdebench.report.board.problems import Problem, problems_of
from spdebench.report.board.rows import BoardRow, metrics_of
from spdebench.report.board.shown import ShownRun
from spdebench.report.formatting import fingerprint, real, text


def rows_of(runs: Iterable[ShownRun]) -> list[BoardRow]:
    """One row per group of seeds, with its variant and rank, sorted by problem and score; pilots come last."""
    groups: dict[str, BoardRow] = {}
    for run in runs:
        groups.setdefault(run.group, BoardRow([])).runs.append(run)
    rows = list(groups.values())
    for row in rows:
        row.runs.sort(key=lambda run: (real(run.record.options.get("seed")) or 0.0, run.seed, run.key))
    for problem in problems_of(rows):
        for row in problem.rows:
            row.metric = problem.metric
        _name_differing_settings(problem.rows)
        _mark_best(problem)
    return sorted(rows, key=_order)


def _order(row: BoardRow) -> tuple[Any, ...]:
    """A key that sorts rows by problem, then by score."""
    data = row.first.datasets[0].order if row.first.datasets else ()
    place = (row.equation, row.inputs, data, len(row.first.datasets), row.view, row.first.problem)
    mean = row.main.mean if row.main else math.nan
    score = math.inf if math.isnan(mean) else mean
    return (*place, row.first.pilot, score, row.first.model, row.first.key)


def _name_differing_settings(problem: Sequence[BoardRow]) -> None:
    """If a model has several rows, name the settings in which they differ; pilots do not count for other rows."""
    for model in {row.first.model for row in problem}:
        same = [row for row in problem if row.first.model == model]
        final = [row for row in same if not row.first.pilot]
        for rows, keys in ((final, _differing(final)), ([row for row in same if row.first.pilot], _differing(same))):
            for row in rows:
                row.variant = ", ".join(f"{text(key)}={text(row.first.settings.get(key))}" for key in keys)


def _differing(rows: Sequence[BoardRow]) -> list[str]:
    """The settings that do not have one value in all rows."""
    settings = [row.first.settings for row in rows] if len(rows) > 1 else []
    keys = dict.fromkeys(key for values in settings for key in values)
    return [key for key in keys if len({fingerprint(values.get(key)) for values in settings}) > 1]


def _mark_best(problem: Problem) -> None:
    """Set ranks and mark the best row of each metric, if a network was trained on the problem.

    Rows with the same score have the same rank, and so have all rows within a factor 1.2 of the floor. No row is the
    best of a metric that only one row has.
    """
    if not problem.networks:
        return
    competing = [row for row in problem.rows if row.competes]
    floor = problem.floor.mean if problem.floor else None
    for metric in metrics_of(competing):
        means = {k: row.scores[metric].mean for k, row in enumerate(competing) if metric in row.scores}
        gaps = {k: gap(means[k], metric) for k in ranked(means, metric)}
        first = leaders(means, metric, floor if metric == problem.metric else None)
        for k, own in gaps.items():
            ahead = 0 if k in first else sum(other < own for other in gaps.values())
            if metric == problem.metric:
                competing[k].rank = 1 + ahead
            if not ahead and len(means) > 1:
                competing[k].best.add(metric)
