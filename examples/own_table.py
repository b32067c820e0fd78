"""A table of one's own: two models and the reference rows at two noise levels. One file, one call.

On the command line:  spdebench --with examples/own_table.py table noise-levels --run --seeds 1

A model of one's own gets a row in every table, this one and the paper's, when it is named:
    spdebench --with examples/own_table.py --with examples/own_model.py table noise-levels --run --only walker
"""

from __future__ import annotations

from spdebench.paper import Table, data, fill, register_table, want, with_reference_rows

SMALL = data("phi41", points=16, frames=10, steps=10, truncation=8, n=40)
SIZES = {"deeponet": {"width": 8}, "fno": {"width": 4, "layers": 1}}

TABLE = register_table(
    Table(
        name="noise-levels",
        title="Phi41 on 16 points, xi -> u: relative L2 at two noise levels",
        source="not in the paper",
        wants=with_reference_rows(
            [
                want(
                    model,
                    SMALL.having(sigma=sigma),
                    "xi",
                    group="",
                    column=f"sigma {sigma:g}",
                    config=config,
                    options={"epochs": 2},
                    published=None,
                )
                for model, config in SIZES.items()
                for sigma in (0.1, 1.0)
            ]
        ),
        notes=("Two epochs only: this table shows how one is declared.",),
    )
)

if __name__ == "__main__":
    filled = fill(TABLE, {}, seeds=1)
    print(f"{TABLE.name}: {len(filled.entries)} numbers in the rows {', '.join(filled.rows)}")
    print(next(iter(filled.missing())))
