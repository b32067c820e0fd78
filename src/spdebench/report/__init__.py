"""Figures of data and results in one style. Importing this package does not import matplotlib."""

from spdebench.report.figures import *  # noqa: F403
from spdebench.report.figures import __all__ as _figures
from spdebench.report.style import save

__all__ = [*_figures, "save"]
