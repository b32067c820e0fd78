"""Figures of data: each function takes data and gives back a matplotlib figure; `KINDS` names them for the user."""

from collections.abc import Callable
from typing import Any

from spdebench.report.figures.noise import plot_noise
from spdebench.report.figures.renormalisation import plot_renormalisation, renormalisation_table
from spdebench.report.figures.solution import plot_solution, plot_spectrum
from spdebench.report.figures.statistics import plot_statistics
from spdebench.report.figures.truncation import plot_truncation, truncation_table

KINDS: dict[str, tuple[Callable[..., Any], str]] = {
    "noise": (plot_noise, "xi = dW/dt of some samples, and its spectrum beside the exact eigenvalues"),
    "renormalisation": (plot_renormalisation, "with and without counter-term, and at growing J (takes an equation)"),
    "solution": (plot_solution, "u(t,x) of some samples, and slices at t = 0, T/2, T"),
    "spectrum": (plot_spectrum, "energy spectrum at several times, with the linear equation's"),
    "statistics": (plot_statistics, "mean and variance over the samples, in space and over time"),
    "truncation": (plot_truncation, "std and energy over time for J = 2..256 on the same noise (takes an equation)"),
}
"""Kind -> (function, line). All take a dataset but ``renormalisation`` and ``truncation``, which take an equation."""

TABLES: dict[str, Callable[..., Any]] = {"renormalisation": renormalisation_table, "truncation": truncation_table}
"""Study of an equation -> the function that gives its numbers as a table."""

__all__ = [
    "KINDS",
    "TABLES",
    "plot_noise",
    "plot_renormalisation",
    "plot_solution",
    "plot_spectrum",
    "plot_statistics",
    "plot_truncation",
    "renormalisation_table",
    "truncation_table",
]
