"""The equations: one file each. Importing this package imports every file of its folder, and so declares them all."""

import pkgutil
from importlib import import_module

from spdebench.equations.base import EQUATIONS, Equation, as_equation, equation
from spdebench.equations.kdv import KdV
from spdebench.equations.kpz import KPZ
from spdebench.equations.nse import NSE
from spdebench.equations.phi41 import Phi41
from spdebench.equations.phi42 import Phi42
from spdebench.equations.phi43 import Phi43
from spdebench.equations.rule import Monomial, Rule
from spdebench.equations.wave import Wave

__all__ = [
    "EQUATIONS",
    "KPZ",
    "NSE",
    "Equation",
    "KdV",
    "Monomial",
    "Phi41",
    "Phi42",
    "Phi43",
    "Rule",
    "Wave",
    "as_equation",
    "equation",
]

for _file in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")
