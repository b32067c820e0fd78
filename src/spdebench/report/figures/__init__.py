"""Figures of data: each function returns a matplotlib figure; `KINDS` lists them for the command line."""

from collections.abc import Callable
from typing import Any

from spdebench.report.figures.law import LAW_KINDS, plot_fan, plot_members, plot_ranks
from spdebench.report.figures.noise import plot_noise
from spdebench.report.figures.renormalisation import plot_renormalisation, renormalisation_table
from spdebench.report.figures.solution import plot_solution, plot_spectrum
from spdebench.report.figures.statistics import plot_statistics
from spdebench.report.figures.truncation import plot_truncation, truncation_table

KINDS: dict[str, tuple[Callable[..., Any], str]] = {
    "noise": (plot_noise, "xi = dW/dt of some samples, and its spectrum compared with the exact eigenvalues"),
    "renormalisation": (
        plot_renormalisation,
        "solutions with and without the counter-term, and how they change as J grows (takes an equation)",
    ),
    "solution": (plot_solution, "u(t,x) of some samples, and slices at t = 0, T/2, T"),
    "spectrum": (plot_spectrum, "energy spectrum at several times, compared with that of the linear equation"),
    "statistics": (plot_statistics, "mean and variance over the samples, in space and over time"),
    "truncation": (plot_truncation, "std and energy over time for J = 2..256 on the same noise (takes an equation)"),
}
"""Kind -> (function, description). ``renormalisation`` and ``truncation`` take an equation, the others a dataset."""

TABLES: dict[str, Callable[..., Any]] = {"renormalisation": renormalisation_table, "truncation": truncation_table}
"""Kind -> the function that returns the numbers of the figure as a table."""

__all__ = [
    "KINDS",
    "LAW_KINDS",
    "TABLES",
    "plot_fan",
    "plot_members",
    "plot_noise",
    "plot_ranks",
    "plot_renormalisation",
    "plot_solution",
    "plot_spectrum",
    "plot_statistics",
    "plot_truncation",
    "renormalisation_table",
    "truncation_table",
]
