"""Numbers of parameters: those in the paper, and those of our two forms of each model.

The paper counts a complex number once, except in NCDE-FNO, which stores its spectral weights as pairs of real numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from spdebench.equations import equation
from spdebench.models.base import MODELS, build
from spdebench.tasks import default_setting


@dataclass(frozen=True)
class PublishedCount:
    """The number of parameters that the paper prints for a model on data of an equation (task xi -> u)."""

    model: str
    parameters: int
    equation: str = "phi41"
    config: dict[str, Any] = field(default_factory=dict)


PUBLISHED: tuple[PublishedCount, ...] = (
    PublishedCount("ncde", 545_088),
    PublishedCount("nrde", 8_656_656),
    PublishedCount("ncde-fno", 48_769),
    PublishedCount("deeponet", 4_329_472),
    PublishedCount("fno", 4_924_449),
    PublishedCount("wno", 3_844_161),
    PublishedCount("nspde", 3_283_457),
    PublishedCount("dlr-net", 133_178),
    PublishedCount("gt", 39_329),
    PublishedCount("nors", 6_300_449),
    PublishedCount("nspde", 530_945, "phi42", {"modes": (8, 8, 8)}),
    PublishedCount("nspde", 1_055_233, "phi42", {"modes": (16, 8, 8)}),
    PublishedCount("nspde", 2_103_809, "phi42", {"modes": (16, 16, 8)}),
    PublishedCount("nspde-s", 530_945, "phi42", {"modes": (8, 8, 8)}),
    PublishedCount("nspde-s", 1_055_233, "phi42", {"modes": (16, 8, 8)}),
    PublishedCount("nspde-s", 2_103_809, "phi42", {"modes": (16, 16, 8)}),
)


def counts(model: str) -> list[dict[str, Any]]:
    """One row for each number in the paper (for phi41 if there is none), with our numbers for both forms."""
    known = [c for c in PUBLISHED if c.model == model]
    return [_row(c) for c in known] or [_row(PublishedCount(model, 0))]


def _row(case: PublishedCount) -> dict[str, Any]:
    """The paper's number and ours, by form, of one model on data of one equation."""
    setting = default_setting(equation(case.equation))
    row: dict[str, Any] = {"equation": case.equation, "config": dict(case.config), "paper": case.parameters or None}
    forms = ["default"]
    if "form" in MODELS[case.model].config_class.__dataclass_fields__:
        forms.append("published")
    for form in forms:
        given = dict(case.config, form=form) if len(forms) > 1 else dict(case.config)
        row[form] = build(case.model, setting, **given).counts()
    row.setdefault("published", row["default"])  # the model has only one form
    return row
