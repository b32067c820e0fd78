"""Phi41, periodic boundary, J = 128, xi -> u: the sound form of a model beside ``form=published``; not in the paper."""

from typing import Any

from spdebench.experiments.base import Table, Want, data
from spdebench.experiments.layout import want, with_honest
from spdebench.experiments.published import TITLES

MODELS = ("wno", "nspde", "gt", "ncde-fno")
SIGMAS = (0.1, 1.0)


def row(model: str, sigma: float, form: str) -> Want:
    own: dict[str, Any] = {}
    if form != "default":
        own = {"config": {"form": form}, "row": f"{TITLES[model]}, {form} form"}
    source = data("phi41", boundary="periodic", sigma=sigma, truncation=128)
    return want(model, source, "xi", group="", column=f"sigma {sigma:g}", published=None, **own)


TABLE = Table(
    name="phi41-forms",
    source="not in the paper",
    title="Phi41, periodic boundary, J = 128, xi -> u: models in their sound and in their published form",
    wants=with_honest(
        tuple(row(model, sigma, form) for model in MODELS for form in ("default", "published") for sigma in SIGMAS)
    ),
    notes=(
        "published form: the architecture that has the paper's parameter count, trained as all others are; 'spdebench "
        "show MODEL' says what differs (of wno the units alone). The mistakes of the public code in data and targets "
        "are not copied.",
        "Models whose two forms are one function (fno, dlr-net, nors) or that have one form are left out.",
    ),
)
