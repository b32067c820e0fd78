"""The requests of ``table --run``, stored in the folder of runs, so that ``status`` can show the remaining work.

``<runs>/campaign-<digest>.json`` holds tables, seeds, edition, choice and device; the same request is one file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from spdebench import spec
from spdebench.campaign.selection import cells_of
from spdebench.errors import Damaged, UserError
from spdebench.paper.base import EDITIONS, Cell, Edition, Table
from spdebench.paper.catalogue import table
from spdebench.records import Records
from spdebench.training.folder import read_json, write_json


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """What one ``table NAME --run`` asks for; ``only`` are the patterns of its rows."""

    tables: tuple[str, ...]
    seeds: int = 3
    edition: str = "paper"
    only: str = ""
    device: str = "cpu"

    def __post_init__(self) -> None:
        spec.check(self, "campaign")
        if self.edition not in EDITIONS:
            raise UserError(f"a campaign's edition is one of {', '.join(EDITIONS)}, got '{self.edition}'")

    @property
    def file_name(self) -> str:
        return f"campaign-{spec.digest(asdict(self))}.json"

    def write(self, runs: str | Path) -> None:
        write_json(Path(runs) / self.file_name, asdict(self))

    def cells(self, find_table: Callable[[str], Table] = table, records: Records | None = None) -> list[Cell]:
        """The cells that the request asks for."""
        which: Edition = "converged" if self.edition == "converged" else "paper"
        return cells_of(map(find_table, self.tables), self.seeds, which, self.only, records)


def campaigns(runs: str | Path) -> list[Campaign]:
    """All requests that are stored in a folder of runs."""
    return [_read(path) for path in sorted(Path(runs).glob("campaign-*.json"))]


def _read(path: Path) -> Campaign:
    """The request in a file; an error says which file is none."""
    try:
        values = read_json(path)
    except Damaged:
        values = None
    if not isinstance(values, dict):
        raise UserError(f"{path} is not a campaign; remove it")
    return spec.build(Campaign, values, path.name)
