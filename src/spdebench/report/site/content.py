"""All that the site shows; pages are made from this alone, so that the same records give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from spdebench.data import Dataset
from spdebench.records import Records
from spdebench.report.board import BoardRow, Problem, ShownDataset, ShownRun, problems_of, rows_of
from spdebench.report.site.board_pages import ROWS, BoardPage, board_pages

if TYPE_CHECKING:
    from spdebench.paper.filled import Filled


@dataclass(frozen=True)
class Content:
    """All that the site shows. ``runs``: ours and those of submissions; ``folders``: run key -> its folder; ``files``:
    dataset key -> its file; ``records``: the collected ones, which tables and the headline are made from."""

    runs: Sequence[ShownRun]
    folders: dict[str, Path] = field(default_factory=dict)
    files: dict[str, Dataset] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    tables: Sequence[Filled] = ()
    records: Records = field(default_factory=dict)

    @cached_property
    def own_runs(self) -> list[ShownRun]:
        """Runs with a page of their own."""
        return [run for run in self.runs if run.submission is None]

    @cached_property
    def submissions(self) -> dict[str, list[ShownRun]]:
        """The runs of each submission, by its name."""
        found: dict[str, list[ShownRun]] = {}
        for run in self.runs:
            if run.submission is not None:
                found.setdefault(run.submission.name, []).append(run)
        return found

    @cached_property
    def rows(self) -> list[BoardRow]:
        return rows_of(self.runs)

    @cached_property
    def problems(self) -> list[Problem]:
        return problems_of(self.rows)

    @cached_property
    def boards(self) -> list[BoardPage]:
        """The pages of the leaderboard by equation; none where all rows are on its first page."""
        return board_pages(self.problems) if len(self.rows) > ROWS else []

    @cached_property
    def places(self) -> dict[str, str]:
        """Key of a problem -> where the leaderboard shows it."""
        pages = self.boards or [BoardPage("", "boards/index.html", self.problems)]
        found = {problem.key: page.path for page in reversed(pages) for problem in page.problems}
        return {key: f"{path}#p-{key}" for key, path in found.items()}

    @cached_property
    def datasets(self) -> dict[str, ShownDataset]:
        """Every dataset that a record or a file names, by key."""
        found = {key: ShownDataset(file.identity) for key, file in self.files.items()}
        for run in self.runs:
            found |= {data.key: data for data in (*run.datasets, *run.shifted)}
        order = sorted(found.values(), key=lambda d: (d.equation, d.order))
        return {data.key: data for data in order}

    def __len__(self) -> int:
        """The number of pages."""
        lists = 3 + bool(self.tables)  # the first page, and those of problems, datasets and tables
        own = len(self.own_runs) + len(self.submissions)
        return lists + len(self.boards) + len(self.tables) + len(self.datasets) + own
