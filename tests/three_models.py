"""``spdebench --with tests/three_models.py table three --run --seeds 2``: a table of three small models, for tests."""

from __future__ import annotations

import spdebench.cli.status
import spdebench.cli.table
from spdebench.paper.base import Table, data
from spdebench.paper.layout import want

OWN = data("phi41", points=16, frames=10, steps=10, n=40, truncation=8, kappa=0.0)
MODELS = {
    "deeponet": {"config": {"width": 8}, "options": {"epochs": 60}},
    "fno": {"config": {"width": 4, "layers": 1}, "options": {"epochs": 40}},
    "nspde": {"config": {"hidden": 4}, "options": {"epochs": 30}},
}
TABLE = Table(
    name="three",
    title="Three models",
    source="tab:none",
    wants=tuple(want(m, OWN, "xi", group="", column="J=8", **fields) for m, fields in MODELS.items()),
)

spdebench.cli.table.find = spdebench.cli.status.find = lambda name: TABLE
