"""Figures of runs, the paper's and ours, drawn from records."""

from collections.abc import Mapping

from spdebench.report.paper_figures.base import Drawer, Drawn, Missing
from spdebench.report.paper_figures.evolution import draw_evolution
from spdebench.report.paper_figures.losses import draw_losses
from spdebench.report.paper_figures.moments import draw_moments
from spdebench.report.paper_figures.observation import draw_observation
from spdebench.report.paper_figures.radar import draw_radar

FIGURES: Mapping[str, Drawer] = {
    "radar": draw_radar,
    "mean-variance": draw_moments,
    "nse-evolution": draw_evolution,
    "loss-comparison": draw_losses,
    "observation": draw_observation,
}
"""Name of a figure or table (as in `paper.catalogue`) -> what draws it."""

__all__ = ["FIGURES", "Drawer", "Drawn", "Missing"]
