"""The paper as declarations: the suite of its datasets."""

from spdebench.experiments.suite import SUITE, Configuration, Row, configurations

__all__ = ["SUITE", "Configuration", "Row", "configurations"]
