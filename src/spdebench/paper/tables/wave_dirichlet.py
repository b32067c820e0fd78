"""Wave equation with Dirichlet boundary: relative L2 at four truncations, both tasks."""

from spdebench.paper.base import Table, data
from spdebench.paper.layout import by_truncation, with_reference_rows

TABLE = Table(
    name="wave-dirichlet",
    source="tab:wave_Dirichlet",
    title="Wave, Dirichlet boundary: relative L2 on the test part",
    wants=with_reference_rows(
        by_truncation(data("wave", boundary="dirichlet"), {"xi": ("fno", "nspde"), "u0+xi": ("nspde",)}),
    ),
)
