"""The order in which runs are made where pilots choose learning rates: first the pilots of a group, then its runs.

Which run a cell needs is known only when its pilots have records, so that each list of jobs is computed when the one
before has been made. Groups come one after the other: a campaign that is stopped has finished some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spdebench.campaign.plan import Job
from spdebench.paper.base import Cell


def phases(cells: Callable[[], list[Cell]], jobs: Callable[[list[Cell]], list[Job]]) -> Iterator[list[Job]]:
    """Lists of jobs to be made one after the other; without pilots there is one.

    ``cells`` computes the cells from the records as they are now.
    """
    for place in dict.fromkeys((cell.table, cell.group) for cell in cells() if cell.pilots):
        for _ in ("pilots", "runs"):
            yield jobs([cell for cell in cells() if (cell.table, cell.group) == place])
    yield jobs(cells())
