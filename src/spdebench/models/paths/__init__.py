"""Neural controlled differential equations, solved on the increments of the noise between frames."""

from spdebench.models.paths.field import MatrixField, product
from spdebench.models.paths.gather import Map, Weights, gathered
from spdebench.models.paths.integrate import Product, Solver, integrate
from spdebench.models.paths.logode import log_ode, partial_log_signatures
from spdebench.models.paths.model import DrivenModel

__all__ = [
    "DrivenModel",
    "Map",
    "MatrixField",
    "Product",
    "Solver",
    "Weights",
    "gathered",
    "integrate",
    "log_ode",
    "partial_log_signatures",
    "product",
]
