"""Phi41 at sigma 1, J = 256, xi -> u: more samples, and larger networks."""

from collections.abc import Mapping
from typing import Any

from spdebench.paper.base import Table, Want, data
from spdebench.paper.layout import want, with_reference_rows

MODELS = ("deeponet", "fno", "nspde", "dlr-net")
SMALL = data("phi41", sigma=1.0, truncation=256)
LARGE = data("phi41", sigma=1.0, truncation=256, n=12000)

SIZES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "W*D": {name: {} for name in MODELS},
    "2W*D": {"deeponet": {"width": 256}, "fno": {"width": 64}, "nspde": {"hidden": 64}, "dlr-net": {"width": 16}},
    "4W*D": {"deeponet": {"width": 512}, "fno": {"width": 128}, "nspde": {"hidden": 128}, "dlr-net": {"width": 32}},
    "W*2D": {
        "deeponet": {"branch_depth": 8, "trunk_depth": 6},
        "fno": {"layers": 2},
        "nspde": {"picard": 2},
        "dlr-net": {"layers": 8},
    },
    "W*D/2": {"deeponet": {"branch_depth": 2, "trunk_depth": 2}, "dlr-net": {"layers": 2}},
}


def samples(model: str, n: int) -> Want:
    """n samples for training and validation, 4:1, and n/5 for the test."""
    return want(
        model,
        LARGE,
        "xi",
        group="samples for training and validation",
        column=f"n={n}",
        task={"split": "4:1:1", "n": n + n // 5},
        published={"train_set": f"n={n}"},
    )


def size(model: str, label: str) -> Want:
    """A network of one of the `SIZES`."""
    return want(
        model,
        SMALL,
        "xi",
        group="width W and depth D",
        column=label,
        config=SIZES[label][model],
        published={"train_set": f"size={label}"},
    )


TABLE = Table(
    name="scaling",
    source="tab:phi41:scale_sample",
    title="Phi41, periodic, sigma 1, J = 256, xi -> u: relative L2 by number of samples and by size of the network",
    wants=with_reference_rows(
        (
            *(samples(m, n) for m in MODELS for n in (1000, 2000, 3000, 5000, 10000)),
            *(size(m, label) for m in MODELS for label in SIZES if m in SIZES[label]),
        )
    ),
    notes=(
        "Number of samples: all runs use parts of one dataset of 12,000 samples. Smaller training parts are subsets of "
        "larger ones; for n samples the test part has n/5.",
        "Size: W is the width (NSPDE: hidden channels). D is the depth: layers, Picard iterations of NSPDE, or depth "
        "of the branch and trunk networks of DeepONet (4 and 3; half of 3 is taken as 2). The base sizes are those for "
        "sigma 1: W = 128, 32, 32, 8. These runs use the 1200 samples of the main table, split 70:15:15. Except for "
        "DeepONet, the paper's numbers for the base size are those of its main table and not those of its part on the "
        "number of samples.",
    ),
)
