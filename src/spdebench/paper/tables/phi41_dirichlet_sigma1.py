"""Phi41, Dirichlet boundary, sigma 1: relative L2 of all models at four truncations, both tasks."""

from spdebench.paper.base import Table, data
from spdebench.paper.layout import PHI41, PHI41_NOTES, by_truncation, with_reference_rows

TABLE = Table(
    name="phi41-dirichlet-sigma1",
    source="tab:phi41_sigma1_Dirichlet",
    title="Phi41, Dirichlet boundary, sigma 1: relative L2 on the test part",
    wants=with_reference_rows(
        by_truncation(
            data("phi41", boundary="dirichlet", sigma=1.0),
            PHI41,
        )
    ),
    notes=PHI41_NOTES,
)
