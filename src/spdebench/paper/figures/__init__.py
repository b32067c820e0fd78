"""The paper's figures."""

from spdebench.paper.figures import data, loss_comparison, mean_variance, nse_evolution, radar

PAPER_FIGURES = (
    radar.TABLE,
    mean_variance.TABLE,
    nse_evolution.TABLE,
    loss_comparison.TABLE,
    data.TRUNCATION,
    data.RENORMALISATION,
    data.RENORMALISATION_PHI42,
)
