"""Phi42 at J = 128, xi -> u: the searches over Picard iterations and modes, by validation error."""

from spdebench.paper.base import Table, data
from spdebench.paper.layout import want

MODES = {(8, 8, 8): 530945, (8, 16, 8): 1055233, (16, 8, 8): 1055233, (16, 16, 8): 2103809}


def search(model: str, title: str, source: str) -> Table:
    """Rows: Picard iterations; columns: modes."""
    return Table(
        name=f"phi42-grid-{model}",
        source=source,
        title=f"Phi42, J = 128, xi -> u: validation relative L2 of {title} by Picard iterations and modes",
        wants=tuple(
            want(
                model,
                data("phi42", renormalisation="paper", truncation=128),
                "xi",
                group="",
                row=f"{title}, {picard} Picard",
                column="modes=({},{},{})".format(*modes),
                metric="val",
                config={"picard": picard, "modes": modes},
                published={"train_set": "picard={} modes=({},{},{}) params={}".format(picard, *modes, count)},
            )
            for picard in (1, 2, 3, 4)
            for modes, count in MODES.items()
        ),
        notes=(
            "Modes: those of the two space axes, then of time. The paper's numbers of parameters are those of "
            "form=published.",
            "The paper's numbers are for J = 128 and the task xi -> u, on which it chooses all settings.",
        ),
    )


NSPDE = search("nspde", "NSPDE", "tab:phi42_nspde_grid")
NSPDE_S = search("nspde-s", "NSPDE-S", "tab:phi42_nspde-S_grid")
