"""``spdebench --with tests/three_models.py table three --run --seeds 2``: a table of three small models, for tests."""

from __future__ import annotations

from spdebench.paper import Table, data, register_table, want

OWN = data("phi41", points=16, frames=10, steps=10, n=40, truncation=8, kappa=0.0)
MODELS = {
    "deeponet": {"config": {"width": 8}, "options": {"epochs": 60}},
    "fno": {"config": {"width": 4, "layers": 1}, "options": {"epochs": 40}},
    "nspde": {"config": {"hidden": 4}, "options": {"epochs": 30}},
}
register_table(
    Table(
        name="three",
        title="Three models",
        source="tab:none",
        wants=tuple(want(m, OWN, "xi", group="", column="J=8", **fields) for m, fields in MODELS.items()),
    )
)
