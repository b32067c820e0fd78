"""Several runs on the same test samples: their scores in one table, and a paired test for each pair."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spdebench.data.identity import from_dict as dataset_from_dict
from spdebench.display import Displayed, TableRows
from spdebench.errors import UserError, did_you_mean
from spdebench.metrics import Scores
from spdebench.metrics.bootstrap import Interval
from spdebench.metrics.compare import Comparison, compare
from spdebench.metrics.scores import Score, bias_note
from spdebench.records import Record, Records
from spdebench.training.folder import is_run
from spdebench.training.run import open_run
from spdebench.training.solver_row import SOLVER

SHARED_TASK = ("inputs", "equation")
"""Fields of a task that may differ: they do not choose the samples."""


@dataclass(frozen=True, repr=False)
class RunComparison(Displayed):
    """Runs by label with their scores on the same test samples, and the tests of all pairs on one metric."""

    records: Mapping[str, Record]
    scores: Mapping[str, Scores]
    metric: str
    tests: Sequence[Comparison]

    @property
    def samples(self) -> int:
        return next(iter(self.scores.values())).counts["samples"]

    @property
    def data(self) -> str:
        """The dataset that the test samples are from."""
        return " and ".join(map(_data_name, next(iter(self.records.values())).datasets))

    def rows(self) -> list[dict[str, Any]]:
        """One row per quantity and one column per run: parameters, metrics that all runs have, time of training."""
        first, *others = self.scores.values()
        shared = [name for name in first if name != self.metric and all(name in scores for scores in others)]
        made = {"parameters": _parameters, "trained on": _device, "training s": _seconds}
        return [
            *({"": name, **{label: f(record) for label, record in self.records.items()}} for name, f in made.items()),
            *(
                {"": name, **{label: _with_interval(scores[name]) for label, scores in self.scores.items()}}
                for name in (self.metric, *shared)
            ),
        ]

    def remarks(self) -> list[str]:
        """A line about the scores of each run that lie outside their intervals."""
        shown = {row[""] for row in self.rows()}
        outside = {k: bias_note([r for r in s.rows() if r["metric"] in shown]) for k, s in self.scores.items()}
        return [f"{label}: {line}" for label, lines in outside.items() for line in lines]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        runs = {
            label: {
                "run": record.name,
                "parameters": record.parameters,
                "device": record.provenance.device,
                "training_seconds": record.training_seconds,
                "scores": {row["metric"]: {k: row[k] for k in ("value", "low", "high")} for row in scores.rows()},
            }
            for (label, record), scores in zip(self.records.items(), self.scores.values(), strict=True)
        }
        return {"data": self.data, "n": self.samples, "runs": runs, "metric": self.metric, "tests": self.test_rows()}

    def test_rows(self) -> list[dict[str, Any]]:
        """One row per pair: the difference of the scores, its interval, and p-values after Holm's correction."""
        return [
            {
                "run": test.a,
                "minus run": test.b,
                "difference": test.difference,
                "low": test.interval.low,
                "high": test.interval.high,
                "p bootstrap": test.bootstrap_holm,
                "p Wilcoxon": test.wilcoxon_holm,
                "better": test.better or "no difference found",
            }
            for test in self.tests
        ]

    def overview(self) -> tuple[str, TableRows]:
        return f"{len(self.records)} runs on {self.samples} test samples of {self.data}", self.rows()


def _parameters(record: Record) -> int | None:
    return record.parameters


def _device(record: Record) -> str | None:
    return record.provenance.device


def _seconds(record: Record) -> float | None:
    return record.training_seconds


def _with_interval(score: Score) -> str:
    ends = "" if score.interval is None else f" [{score.interval.low:.4g}, {score.interval.high:.4g}]"
    return f"{score.value:.4g}{ends}"


def compare_runs(runs: Sequence[str | Path], known: Records, metric: str = "rel_l2") -> RunComparison:
    """Runs, each a folder or the name of a record among ``known``, compared on one metric."""
    if len(runs) < 2:
        raise UserError(f"compare takes at least 2 runs, got {len(runs)}")
    found = [_find(run, known) for run in runs]
    if len({record.digest for record, _ in found}) < len(found):
        names = [record.name for record, _ in found]
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(f"compare: the run {twice} was given twice; give different runs")
    for record, _ in found[1:]:
        _check_same_samples(found[0][0], record)
    labels = _labels([record for record, _ in found])
    scores = dict(zip(labels, (scores for _, scores in found), strict=True))
    for label, each in scores.items():
        if metric not in each or each[metric].samples is None:
            able = [name for name, score in each.scores.items() if score.samples is not None]
            raise UserError(
                f"{label} has no values of '{metric}' for single samples{did_you_mean(metric, able)}; "
                "a run's folder has more of them than its record"
            )
        if each[metric].ideal != 0:
            raise UserError(f"'{metric}' is best at {each[metric].ideal:g}, not where it is smallest; compare an error")
    return RunComparison(
        dict(zip(labels, (record for record, _ in found), strict=True)), scores, metric, compare(scores, metric)
    )


def _find(run: str | Path, known: Records) -> tuple[Record, Scores]:
    """The record and the scores of a run's folder, or of a record with this name."""
    if is_run(run):
        opened = open_run(run)
        return opened.record, opened.scores
    name = Path(run).name
    for record in known.values():
        if name in (record.name, record.digest) and record.model == SOLVER:
            raise UserError(f"{name} is the solver that made the data, so its error is 0; compare runs of models")
        if name in (record.name, record.digest):
            return record, _scores(record)
    names = [record.name for record in known.values()]
    near = did_you_mean(name, names) if difflib.get_close_matches(name, names) else ""
    raise UserError(f"no such run: {run} (neither the folder of a run nor the name of a record){near}")


def _scores(record: Record) -> Scores:
    """The scores of a record, with the values of single samples that it contains."""
    found = {}
    for name, value in record.scores.items():
        low, high = value.low, value.high
        ends = None if low is None or high is None else Interval(low, high, 0.95, "stored")
        samples = np.array(record.samples[name]) if name in record.samples else None
        found[name] = Score(name, value.value, "samplewise", samples=samples, interval=ends)
    count = max((len(values) for values in record.samples.values()), default=0)
    return Scores(found, {"samples": count}, None, {})


def _check_same_samples(first: Record, other: Record) -> None:
    """Refuse runs that were tested on different samples."""
    if first.datasets != other.datasets:
        raise UserError(
            f"{first.name} and {other.name} were tested on different data ({_told_apart(first, other)} and "
            f"{_told_apart(other, first)}); paired tests need the same samples"
        )
    a, b = ({k: v for k, v in record.task.items() if k not in SHARED_TASK} for record in (first, other))
    for key in dict.fromkeys((*a, *b)):
        if a.get(key) != b.get(key):
            raise UserError(
                f"{first.name} and {other.name} were tested on different samples ({key}={a.get(key)} and "
                f"{b.get(key)}); paired tests need the same ones"
            )


def _data_name(identity: Mapping[str, Any]) -> str:
    """The name of the file of a dataset with this identity, or that of its equation if it was imported."""
    try:
        return dataset_from_dict(dict(identity)).file_name
    except UserError:  # imported, or of an equation that is not declared here
        return str(identity.get("equation") or "imported data")


def _told_apart(record: Record, other: Record) -> str:
    """The name of the data of a record; if the data of the other have the same one, also the fields that differ."""
    own, theirs = record.datasets[0], other.datasets[0]
    name, fields, rest = _data_name(own), own.get("fields", {}), theirs.get("fields", {})
    differing = [f"{key}={value}" for key, value in fields.items() if rest.get(key) != value]
    return " ".join([name, *differing]) if name == _data_name(theirs) else name


def _labels(records: Sequence[Record]) -> list[str]:
    """The models' names where they differ, else the names of the runs."""
    models = [record.model for record in records]
    return models if len(set(models)) == len(models) else [record.name for record in records]
