"""The paper as declarations: its tables, figures and published numbers."""

from spdebench.paper.base import Cell, Table, Want, data
from spdebench.paper.catalogue import TABLES, register_table, table
from spdebench.paper.fill import fill
from spdebench.paper.filled import Filled
from spdebench.paper.layout import by_metric, by_truncation, want, with_reference_rows

__all__ = [
    "TABLES",
    "Cell",
    "Filled",
    "Table",
    "Want",
    "by_metric",
    "by_truncation",
    "data",
    "fill",
    "register_table",
    "table",
    "want",
    "with_reference_rows",
]
