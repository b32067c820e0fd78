"""Figures of data: each function takes data and gives back a matplotlib figure; `KINDS` names them for the user."""

from collections.abc import Callable
from typing import Any

from spdebench.report.figures.noise import plot_noise
from spdebench.report.figures.solution import plot_solution, plot_spectrum
from spdebench.report.figures.statistics import plot_statistics
from spdebench.report.figures.truncation import plot_truncation, truncation_table

KINDS: dict[str, tuple[Callable[..., Any], str]] = {
    "noise": (plot_noise, "xi = dW/dt of some samples, and its spectrum beside the exact eigenvalues"),
    "solution": (plot_solution, "u(t,x) of some samples, and slices at t = 0, T/2, T"),
    "spectrum": (plot_spectrum, "energy spectrum at several times, with the linear equation's"),
    "statistics": (plot_statistics, "mean and variance over the samples, in space and over time"),
    "truncation": (plot_truncation, "std and energy over time for J = 2..256 on the same noise (takes an equation)"),
}
"""Kind -> (function, one line). All take a dataset but ``truncation``, which takes an equation."""

__all__ = [
    "KINDS", "plot_noise", "plot_solution", "plot_spectrum", "plot_statistics", "plot_truncation", "truncation_table",
]
