"""Phi41, periodic boundary, sigma 1: relative L2 of all models at four truncations, both tasks."""

from spdebench.paper.base import Table, data
from spdebench.paper.layout import PHI41, PHI41_NOTES, by_truncation, with_reference_rows

TABLE = Table(
    name="phi41-periodic-sigma1",
    source="tab:phi41_sigma1_Periodic",
    title="Phi41, periodic boundary, sigma 1: relative L2 on the test part",
    wants=with_reference_rows(
        by_truncation(
            data("phi41", boundary="periodic", sigma=1.0),
            PHI41,
        )
    ),
    notes=PHI41_NOTES,
)
