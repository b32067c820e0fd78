"""The driving noise: a counter-based stream, Brownian paths, bases, covariance spectra, and the Wiener process."""

from spdebench.noise.base import Basis
from spdebench.noise.bases import Fourier, Lattice, Sine, make_basis
from spdebench.noise.haar import Haar
from spdebench.noise.keyed import KeyedSeed
from spdebench.noise.stream import STREAM, Seed
from spdebench.noise.unseen import UnseenNoise
from spdebench.noise.wiener import PartialNoise, Wiener

__all__ = [
    "STREAM",
    "Basis",
    "Fourier",
    "Haar",
    "KeyedSeed",
    "Lattice",
    "PartialNoise",
    "Seed",
    "Sine",
    "UnseenNoise",
    "Wiener",
    "make_basis",
]
