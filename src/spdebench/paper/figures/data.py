"""Figures of the data alone: they need no runs, only a command."""

from spdebench.paper.base import Table

_WHAT = (
    "As the number J of noise modes grows, a product of rough terms in the equation grows without bound. A "
    "counter-term compensates it. The figure shows one path with and without the counter-term, and how much the "
    "solution changes from one J to the next: with the counter-term the changes fall, and the solution has a limit; "
    "without it they do not."
)

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
    notes=(_WHAT,),
)

RENORMALISATION_PHI42 = Table(
    name="renormalisation-phi42",
    kind="figure",
    source="app:compara_phi",
    title="Phi42, J = 128: mean of 20 trajectories with and without renormalisation",
    draw=("spdebench plot renormalisation phi42 truncation=128 -n 20",),
    notes=(_WHAT,),
)
