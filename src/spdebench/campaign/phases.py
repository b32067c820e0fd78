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

    ``cells`` computes the cells from the records as they are now. In a table with pilots the groups keep their order,
    also those whose pilots have been made before.
    """
    first = cells()
    tables = {cell.table for cell in first if cell.pilots}
    for place in dict.fromkeys((cell.table, cell.group) for cell in first if cell.table in tables):
        for _ in ("pilots", "runs"):
            todo = jobs([cell for cell in cells() if (cell.table, cell.group) == place])
            if any(job.status != "done" for job in todo):
                yield todo
    yield jobs(cells())
