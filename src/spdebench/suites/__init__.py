"""Suites of problems: the datasets of the paper, and the core suite of nonlinear problems."""

from spdebench.suites.base import SUITES, Shift, Suite, SuiteProblem, register_suite
from spdebench.suites.core import CORE
from spdebench.suites.paper import PAPER

register_suite(CORE)
register_suite(PAPER)

__all__ = ["CORE", "PAPER", "SUITES", "Shift", "Suite", "SuiteProblem", "register_suite"]
