"""Phi41, periodic boundary, J = 128, xi -> u: models in two forms and with two kernels; not in the paper."""

from typing import Any

from spdebench.paper.base import Table, Want, data
from spdebench.paper.layout import want, with_reference_rows
from spdebench.paper.published import title

MODELS = ("wno", "nspde", "gt", "ncde-fno")
SIGMAS = (0.1, 1.0)


def row(model: str, sigma: float, own: dict[str, Any], form: str) -> Want:
    """One cell: a model with its own settings ``own`` at one sigma, named by the ``form`` of the model."""
    source = data("phi41", boundary="periodic", sigma=sigma, truncation=128)
    name = f"{title(model)}, {form}" if form else title(model)
    return want(model, source, "xi", group="", column=f"sigma {sigma:g}", published=None, config=own, row=name)


FORMS = tuple(
    row(model, sigma, own, form)
    for model in MODELS
    for own, form in (({}, "default form"), ({"form": "published"}, "published form"))
    for sigma in SIGMAS
)
KERNELS = tuple(
    row("dlr-net", sigma, {"kernel": kernel}, form)
    for kernel, form in (("exact", ""), ("generator", "generator's kernel"))
    for sigma in SIGMAS
)

TABLE = Table(
    name="phi41-forms",
    source="not in the paper",
    title="Phi41, periodic boundary, J = 128, xi -> u: models in two forms and with two kernels",
    wants=with_reference_rows((*FORMS, *KERNELS)),
    notes=(
        "published form: the architecture with the paper's parameter count, trained like all others; 'spdebench show "
        "MODEL' prints the differences (for wno only the normalisation). Errors of the public code in data and targets "
        "are not reproduced. Models with only one form, or whose two forms are the same function (fno, dlr-net, nors), "
        "are left out.",
        "DLR-Net, linear, trees: integrals with the exact heat kernel, or with the step of the solver that made the "
        "data (generator's kernel). On real data that step is unknown; the difference shows the advantage of knowing "
        "it.",
    ),
)
