"""Figures: functions of data, drawn in one style. Importing this does not import matplotlib."""

from spdebench.report.figures import (
    KINDS,
    TABLES,
    plot_noise,
    plot_renormalisation,
    plot_solution,
    plot_spectrum,
    plot_statistics,
    plot_truncation,
    renormalisation_table,
    truncation_table,
)
from spdebench.report.style import save

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
    "save",
    "truncation_table",
]
