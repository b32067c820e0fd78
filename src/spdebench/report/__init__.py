"""Figures: functions of data, drawn in one style. Importing this does not import matplotlib."""

from spdebench.report.figures import (
    KINDS,
    TABLES,
    plot_noise,
    plot_solution,
    plot_spectrum,
    plot_statistics,
    plot_truncation,
    truncation_table,
)
from spdebench.report.style import save

__all__ = [
    "KINDS", "TABLES", "plot_noise", "plot_solution", "plot_spectrum", "plot_statistics", "plot_truncation", "save",
    "truncation_table",
]
