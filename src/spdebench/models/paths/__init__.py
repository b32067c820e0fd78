"""Paths that drive networks: controlled differential equations on the frames' increments, and their normalisers."""

from spdebench.models.paths.field import MatrixField
from spdebench.models.paths.integrate import Product, Solver, integrate
from spdebench.models.paths.logode import log_ode, partial_log_signatures
from spdebench.models.paths.normalise import Scale, Standard

__all__ = ["MatrixField", "Product", "Scale", "Solver", "Standard", "integrate", "log_ode", "partial_log_signatures"]
