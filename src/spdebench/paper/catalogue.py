"""All tables and figures: those of the paper, and those that users add with `register_table`."""

from __future__ import annotations

from collections.abc import Iterator

from spdebench.paper.base import Table
from spdebench.registry import Declarations


class TableCatalogue(Declarations[Table]):
    """Names to tables; iterating gives the tables, in the order of their declarations."""

    def __iter__(self) -> Iterator[Table]:
        return iter(self.values())


def _builtin() -> None:
    """Declare the tables and figures of this package."""
    from spdebench.paper.figures import PAPER_FIGURES  # imported only when a table is first looked up
    from spdebench.paper.tables import PAPER_TABLES

    for each in (*PAPER_TABLES, *PAPER_FIGURES):
        TABLES.add(each.name, each)


TABLES = TableCatalogue("table", "tables", _builtin)


def register_table(table: Table) -> Table:
    """Add a table: from then on ``spdebench table NAME`` and ``list tables`` know it.

    Call it in a file that ``--with FILE`` names, or in a module that a package declares as an entry point of the group
    ``spdebench.tables``.
    """
    TABLES.add(table.name, table)
    return table


def table(name: str) -> Table:
    """The table or figure called ``name``."""
    return TABLES[name]
