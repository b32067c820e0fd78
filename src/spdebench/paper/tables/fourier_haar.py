"""Phi41 driven by Fourier and by Haar noise, sigma 1: five metrics of FNO and WNO."""

from spdebench.paper.base import Table, data
from spdebench.paper.layout import by_metric, with_reference_rows

TABLE = Table(
    name="fourier-haar",
    source="tab:phi41_FH",
    title="Phi41, periodic, sigma 1: noise in the Fourier and in the Haar basis, xi -> u",
    wants=with_reference_rows(
        tuple(
            w
            for basis in ("fourier", "haar")
            for j in (128, 256)
            for w in by_metric(
                data("phi41", basis=basis, sigma=1.0, truncation=j), ("fno", "wno"), group=f"{basis.title()}, J={j}"
            )
        )
    ),
)
