"""``spdebench leaderboard``: the rows of every problem of a suite, ours and submissions, with the floor among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spdebench import spec
from spdebench.challenge import Submission
from spdebench.challenge.submission import ENOUGH_SEEDS
from spdebench.display import aligned
from spdebench.errors import unknown
from spdebench.paper.catalogue import TABLES
from spdebench.records import Records
from spdebench.records.summary import MAIN, MISSING, at_floor, count, mean_and_std, number, rough
from spdebench.registry import command
from spdebench.report.board.problems import Problem, problems_of
from spdebench.report.board.ranking import rows_of
from spdebench.report.board.rows import BoardRow
from spdebench.report.board.shown import ShownRun, pilots_of, shown_runs
from spdebench.report.board.submitted import identity_of, shown_submissions
from spdebench.report.markup import md, md_table, paragraph
from spdebench.report.tables import as_csv
from spdebench.suites import Suite

FORMATS = ("text", "md", "csv")
FIELDS = (
    *("suite", "problem", "seen", "metric", "floor", "rank", "model", "variant", "kind", "submission", "score", "std"),
    *("at_floor", "seeds", "few_seeds", "parameters", "training_seconds", "inference_ms", "hidden", "reproduced"),
)
NOTE = (
    "Mean ± s.d. over training seeds. Values of rel_l2 within a factor 1.2 of the floor count as equal. A row without "
    "a rank uses the numerical scheme that generated the data. Submissions are scored on other samples of the same "
    "problem."
)


@dataclass(frozen=True)
class ProblemBoard:
    """A problem of a suite, or one in which models are given the noise up to truncation ``seen``, and its rows."""

    suite: str
    name: str
    seen: int | None
    problem: Problem

    @property
    def title(self) -> str:
        return self.name if self.seen is None else f"{self.name}, seen={self.seen}"

    @property
    def rows(self) -> list[BoardRow]:
        """The rows of models, the best first, without short runs that tried a learning rate."""
        return [row for row in self.problem.rows if not (row.first.reference or row.first.pilot)]

    @property
    def pilots(self) -> int:
        return sum(row.first.pilot for row in self.problem.rows)

    @property
    def floor(self) -> float | None:
        return self.problem.floor.mean if self.problem.floor else None

    def at_floor(self, mean: float | None) -> bool:
        """Whether a relative L2 error is within the factor 1.2 of the floor; False for energy scores.

        The energy score of the true law is not small, so that a factor has no meaning there.
        """
        return self.problem.metric == MAIN and at_floor(mean, self.floor)

    @property
    def leaders(self) -> list[BoardRow]:
        """The rows with rank 1."""
        return [row for row in self.rows if row.rank == 1]


def boards(suite: Suite, records: Records, entered: Iterable[Submission], only: str = "") -> list[ProblemBoard]:
    """The problems of a suite that have a row, in the suite's order; ``only``: the one of this name."""
    wanted = {_data_and_task(*identity_of(problem)): problem.name for problem in suite.problems}
    if only and only not in wanted.values():
        raise unknown(f"problem of the suite {suite.name}", only, [problem.name for problem in suite.problems])
    names: dict[str, str] = {}
    runs: list[ShownRun] = []
    for run in (*shown_runs(records, pilots_of(TABLES)), *shown_submissions(entered)):
        name = wanted.get(_data_and_task(run.record.datasets[0], run.record.task)) if len(run.datasets) == 1 else None
        if name is not None and only in ("", name):
            names[run.problem] = name
            runs.append(run)
    found = [
        ProblemBoard(suite.name, names[problem.key], problem.rows[0].first.record.task.get("seen"), problem)
        for problem in problems_of(rows_of(runs))
    ]
    order = list(wanted.values())
    return sorted(found, key=lambda each: (order.index(each.name), -1 if each.seen is None else each.seen))


def _data_and_task(data: Mapping[str, Any], task: Mapping[str, Any]) -> str:
    """Dataset and task as text, without ``seen`` and what depends on it: members and chunk size."""
    kept = {key: value for key, value in data.items() if key not in ("seen", "members", "chunk")}
    return spec.canonical_json([kept, {key: value for key, value in task.items() if key != "seen"}])


# --- numbers ------------------------------------------------------------------------------------------------------
def tidy(found: Iterable[ProblemBoard]) -> list[dict[str, Any]]:
    """One dictionary per row, keys as in `FIELDS`; ``hidden`` and ``reproduced`` are None for our own runs."""
    out = []
    for board in found:
        for row in board.rows:
            entered = row.kind == "submission"
            mean = row.main.mean if row.main else None
            values = (
                *(board.suite, board.name, board.seen, board.problem.metric, board.floor, row.rank, row.first.model),
                *(row.variant, row.kind, row.first.record.name if entered else None, mean),
                *(row.main.std if row.main else None, board.at_floor(mean), len(row.runs), bool(row.few_seeds)),
                *(row.parameters, row.training_seconds, row.inference_ms),
                *((row.hidden, row.reproduced) if entered else (None, None)),
            )
            out.append(dict(zip(FIELDS, values, strict=True)))
    return out


def overview(found: Iterable[ProblemBoard]) -> list[dict[str, str]]:
    """One line per problem: the leading models, their score, and the floor."""
    return [
        {
            "problem": board.title,
            "first": ", ".join(row.label for row in board.leaders) or MISSING,
            "score": _score(board.leaders[0]) if board.leaders else MISSING,
            "metric": board.problem.metric,
            "floor": number(board.floor),
            "rows": str(len(board.rows)),
            "submissions": str(len(board.problem.submissions)),
            "note": _seeds_note(board.leaders[0])
            if board.leaders
            else "not ranked, because no network was trained yet",
        }
        for board in found
    ]


def lines(board: ProblemBoard) -> list[dict[str, str]]:
    """The rows of a problem as text, with the floor in its place among them."""
    metric = board.problem.metric
    out = [
        {
            "rank": str(row.rank) if row.rank else MISSING,
            "model": row.label,
            metric: _score(row),
            "seeds": _seeds_note(row) or str(len(row.runs)),
            "parameters": count(row.parameters) or MISSING,
            "training s": rough(row.training_seconds) if row.training_seconds else MISSING,
            "ms per sample": number(row.inference_ms),
            "checked": row.checked if row.kind != "submission" else f"{row.first.record.name}: {row.checked}",
        }
        for row in board.rows
    ]
    if board.floor is not None and out:
        below = sum(row.main is not None and row.main.mean < board.floor for row in board.rows)
        blank = dict.fromkeys(out[0], "")
        out.insert(below, blank | {"model": "floor", metric: number(board.floor), "checked": "the best possible"})
    return out


def _score(row: BoardRow) -> str:
    return mean_and_std(row.main.mean, row.main.std) if row.main else MISSING


def _seeds_note(row: BoardRow) -> str:
    return f"{row.few_seeds} (fewer than {ENOUGH_SEEDS})" if row.few_seeds else ""


# --- as text ------------------------------------------------------------------------------------------------------
def render(suite: Suite, found: Sequence[ProblemBoard], format: str, *, whole: bool) -> str:
    """The boards in one of the `FORMATS`: all rows of each problem, or one line per problem. CSV has all rows."""
    if format == "csv":
        return as_csv(FIELDS, tidy(found))
    blocks = [] if whole else [_table(overview(found), format)]
    for board in found if whole else []:
        title = f"{suite.name}: {board.title}, by {board.problem.metric}"
        remark = f"{board.pilots} short runs that tried learning rates are left out." if board.pilots else ""
        blocks += [f"### {md(title)}" if format == "md" else title, _table(lines(board), format), remark]
    more = [] if whole else [f"All rows of a problem: {command(f'leaderboard {found[0].name}')}"] if found else []
    return "\n\n".join(filter(None, [*blocks, paragraph(NOTE), *more])) + "\n"


def _table(rows: Sequence[Mapping[str, str]], format: str) -> str:
    """Rows as a table in text or Markdown."""
    if not rows:
        return ""
    if format == "text":
        return "\n".join(aligned(rows))
    return md_table([*map(md, rows[0])], [[md(value) for value in row.values()] for row in rows])
