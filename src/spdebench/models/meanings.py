"""What the settings of models mean, in one line each; a model of a user says it in the metadata of its fields."""

from __future__ import annotations

from spdebench.models.base import MODELS
from spdebench.spec import declared_meaning, has_field_of_package

MEANINGS = {
    "width": "number of channels of the layers",
    "layers": "number of layers",
    "modes": "Fourier modes that are kept: along each space axis, then along time",
    "padding": "frames of zeros that are appended in time, because the Fourier transform is periodic",
    "form": "default, or published: the architecture with the paper's number of parameters",
    "hidden": "dimension of the latent state (at each point, where the model has one there)",
    "heads": "attention heads",
    "picard": "Picard iterations",
    "solver": "numerical scheme of the controlled differential equation: euler, heun or rk4",
    "space_modes": "Fourier modes that are kept along each space axis, both signs counted",
    "window": "time steps that one log-signature covers",
    "level": "levels of the wavelet transform",
    "wavelet": "haar or db1 to db8",
    "latent": "hidden width of the map that computes the learned initial datum v",
    "branch_depth": "linear layers of the branch network",
    "trunk_depth": "linear layers of the trunk network",
    "kernel": "exact: the semigroup of the equation; generator: the linear part of the scheme that made the data",
    "height": "largest height of the trees, the number of nested integrals",
    "degree": "largest degree of the trees in the sense of regularity structures",
    "ridge": "ridge parameter of the regression",
    "rank": "largest rank of the covariance",
    "gt.hidden": "width of the MLP in each layer",
    "ncde.width": "width of the vector field",
    "nrde.width": "width of the vector field",
    "ncde-fno.width": "width of the MLPs in the drift and in the readout",
    "flow-fno.steps": "steps of the midpoint method that draw a member; each evaluates the network twice",
    "step.rows": "pairs of adjacent frames that the final regression uses, at most",
    "step.stages": "stages of one step, at most",
    "step.history": "earlier frames that a step may use, at most",
}
"""By setting, or by ``model.setting`` where one model uses a name in its own sense."""
COMMON = ("width", "layers", "modes", "heads")
"""The settings that mean the same in models of users."""


def meaning(model: str, setting: str) -> str:
    """The meaning of a setting: ``field(metadata={"meaning": ..})`` of the configuration, or the one above.

    Of the settings of a user's model only `COMMON` ones are explained by the text above.
    """
    config = MODELS[model].config_class
    if own := declared_meaning(config, setting):
        return own
    if not (has_field_of_package(config, setting) or setting in COMMON):
        return ""
    return MEANINGS.get(f"{model}.{setting}") or MEANINGS.get(setting, "")
