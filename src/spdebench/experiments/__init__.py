"""The paper as declarations: the suite of its datasets, its tables and figures, and the runs that fill them."""

from spdebench.experiments.base import Cell, Table
from spdebench.experiments.catalogue import TABLES, table
from spdebench.experiments.fill import Filled, fill
from spdebench.experiments.suite import SUITE, Configuration, Row, configurations

__all__ = ["SUITE", "TABLES", "Cell", "Configuration", "Filled", "Row", "Table", "configurations", "fill", "table"]
