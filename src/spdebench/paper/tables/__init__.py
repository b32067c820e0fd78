"""The core leaderboard, the paper's tables and two more of ours, in the order in which they are worth filling."""

from spdebench.paper.tables import (
    core,
    fourier_haar,
    metrics_regular,
    metrics_singular,
    observation,
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

PAPER_TABLES = (
    core.TABLE,
    observation.TABLE,
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
)
