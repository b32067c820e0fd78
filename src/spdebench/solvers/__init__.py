"""Schemes and the one time loop. Importing this package declares the schemes."""

from spdebench.equations.scheme import SCHEMES, Scheme, make_scheme
from spdebench.solvers.crank_nicolson import CrankNicolson
from spdebench.solvers.dispersive import NormalForm
from spdebench.solvers.hyperbolic import Leapfrog, Trigonometric
from spdebench.solvers.loop import Trajectories, seen_noise, simulate, solve, stored_inputs
from spdebench.solvers.parabolic import ETDRK4, SemiImplicit
from spdebench.solvers.wick import Wick

__all__ = [
    "ETDRK4",
    "SCHEMES",
    "CrankNicolson",
    "Leapfrog",
    "NormalForm",
    "Scheme",
    "SemiImplicit",
    "Trajectories",
    "Trigonometric",
    "Wick",
    "make_scheme",
    "seen_noise",
    "simulate",
    "solve",
    "stored_inputs",
]
