"""Figures of the data alone: they need no runs, only a command."""

from spdebench.paper.base import Table

TRUNCATION = Table(
    name="truncation-statistics",
    kind="figure",
    source="fig: phi41_stat",
    title="Phi41, sigma 1: standard deviation and energy over time for J = 2..256",
    draw=("spdebench plot truncation phi41 sigma=1 -n 1200",),
)

RENORMALISATION = Table(
    name="renormalisation",
    kind="figure",
    source="fig:phi42_phi43_renorm_or_not",
    title="KPZ and Phi43 with and without renormalisation",
    draw=("spdebench plot renormalisation kpz truncation=128", "spdebench plot renormalisation phi43"),
)

RENORMALISATION_PHI42 = Table(
    name="renormalisation-phi42",
    kind="figure",
    source="app:compara_phi",
    title="Phi42, J = 128: mean of 20 trajectories with and without renormalisation",
    draw=("spdebench plot renormalisation phi42 truncation=128 -n 20",),
)
