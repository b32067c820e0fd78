"""All that the site shows; pages are made from this alone, so that the same records give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from spdebench.data import Dataset
from spdebench.report.site.board import BoardRow, rows_of
from spdebench.report.site.shown import ShownDataset, ShownRun

if TYPE_CHECKING:
    from spdebench.paper.fill import Filled


@dataclass(frozen=True)
class Content:
    """All that the site shows. ``folders``: run key -> its folder; ``files``: dataset key -> its file."""

    runs: Sequence[ShownRun]
    folders: dict[str, Path] = field(default_factory=dict)
    files: dict[str, Dataset] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    tables: Sequence[Filled] = ()

    @cached_property
    def rows(self) -> list[BoardRow]:
        return rows_of(self.runs)

    @cached_property
    def datasets(self) -> dict[str, ShownDataset]:
        """Every dataset that a record or a file names, by key."""
        found = {key: ShownDataset(file.identity) for key, file in self.files.items()}
        for run in self.runs:
            found |= {data.key: data for data in (*run.datasets, *run.shifted)}
        order = sorted(found.values(), key=lambda d: (d.equation, d.label, d.extras, d.key))
        return {data.key: data for data in order}

    def __len__(self) -> int:
        """The number of pages, a board that is split counted once."""
        return 2 + len(self.datasets) + len(self.runs) + (len(self.tables) + 1) * bool(self.tables)
