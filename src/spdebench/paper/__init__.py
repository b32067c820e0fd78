"""The paper as declarations: the suite of its datasets, its tables, figures and published numbers."""

from spdebench.paper.base import Cell, Table, Want, data
from spdebench.paper.catalogue import TABLES, register_table, table
from spdebench.paper.fill import Filled, fill
from spdebench.paper.layout import by_metric, by_truncation, want, with_reference_rows
from spdebench.paper.suite import SUITE, Configuration, SuiteRow, configurations

__all__ = [
    "SUITE",
    "TABLES",
    "Cell",
    "Configuration",
    "Filled",
    "SuiteRow",
    "Table",
    "Want",
    "by_metric",
    "by_truncation",
    "configurations",
    "data",
    "fill",
    "register_table",
    "table",
    "want",
    "with_reference_rows",
]
