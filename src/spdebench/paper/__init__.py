"""The paper as declarations: the suite of its datasets, its tables, figures and published numbers."""

from spdebench.paper.base import Cell, Table
from spdebench.paper.catalogue import TABLES, table
from spdebench.paper.fill import Filled, fill
from spdebench.paper.suite import SUITE, Configuration, Row, configurations

__all__ = ["SUITE", "TABLES", "Cell", "Configuration", "Filled", "Row", "Table", "configurations", "fill", "table"]
