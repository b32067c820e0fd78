"""Suites of problems: the paper's datasets, and the core suite, whose problems have something to learn."""

from spdebench.suites.base import SUITES, Shift, Suite, SuiteProblem, register_suite
from spdebench.suites.core import CORE
from spdebench.suites.paper import PAPER

register_suite(CORE)
register_suite(PAPER)

__all__ = ["CORE", "PAPER", "SUITES", "Shift", "Suite", "SuiteProblem", "register_suite"]
