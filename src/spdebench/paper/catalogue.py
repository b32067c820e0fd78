"""All tables and figures of the paper, and one of ours, in the order in which they are worth filling."""

from __future__ import annotations

from spdebench.errors import unknown
from spdebench.paper.base import Table
from spdebench.paper.figures import data, loss_comparison, mean_variance, nse_evolution, radar
from spdebench.paper.tables import (
    fourier_haar,
    metrics_regular,
    metrics_singular,
    phi41_dirichlet,
    phi41_dirichlet_sigma1,
    phi41_forms,
    phi41_periodic,
    phi41_periodic_sigma1,
    phi42_grid,
    phi42_noise_levels,
    regular_and_kpz,
    scaling,
    wave_dirichlet,
)

TABLES: tuple[Table, ...] = (
    phi41_periodic.TABLE,
    phi41_periodic_sigma1.TABLE,
    phi41_dirichlet.TABLE,
    phi41_dirichlet_sigma1.TABLE,
    regular_and_kpz.TABLE,
    wave_dirichlet.TABLE,
    phi42_noise_levels.TABLE,
    metrics_singular.TABLE,
    metrics_regular.TABLE,
    fourier_haar.TABLE,
    scaling.TABLE,
    phi42_grid.NSPDE,
    phi42_grid.NSPDE_S,
    phi41_forms.TABLE,
    radar.TABLE,
    mean_variance.TABLE,
    nse_evolution.TABLE,
    loss_comparison.TABLE,
    data.TRUNCATION,
    data.RENORMALISATION,
    data.RENORMALISATION_PHI42,
)


def table(name: str) -> Table:
    """The table or figure called ``name``."""
    for each in TABLES:
        if each.name == name:
            return each
    raise unknown("table", name, [t.name for t in TABLES])
