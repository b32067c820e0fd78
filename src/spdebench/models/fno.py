"""Fourier neural operator:  u(t, x) = D L_n .. L_1 P [ dw(t_0..t_T, x), (u0(x)), t, x ].

(Li et al. 2021, arXiv:2010.08895.) P is a linear map of the coordinates and of the whole noise path at x, which is the
same input for every t. L_1 .. L_n are Fourier layers and D decodes (`layers/fourier.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from spdebench.errors import UserError
from spdebench.models.base import Config, Features, OperatorModel
from spdebench.models.layers.coordinates import coordinates
from spdebench.models.layers.fourier import FourierTrunk
from spdebench.models.layers.normalise import fit_units
from spdebench.tasks import Batch, Setting


@dataclass(frozen=True, kw_only=True)
class FNOConfig(Config):
    """``modes``: one number m for each space axis (k = -m..m-1 are kept), then one for time (w = 0..m-1)."""

    width: int = 32
    layers: int = 3
    modes: tuple[int, ...] = (32, 25)
    padding: int = 6
    form: Literal["default", "published"] = "default"


class FNO(OperatorModel, name="fno"):
    """Fourier neural operator on space and time together.

    P is affine, so its noise part is computed once for each x and broadcast over t. The authors' code computes the same
    function but repeats the noise path at x for each of the T frames. dw, u0 and u are divided by their root mean
    squares over the training part. Coordinates are those of the grid points, not j/(N-1). Both forms are the same
    function; ``form="published"`` stores weights as complex numbers and has the paper's number of parameters: 4,924,449
    on phi41.
    """

    title = "FNO"
    config_class = FNOConfig
    dims = (1, 2, 3)
    added_inputs = ("u0+xi",)
    any_grid = True

    config: FNOConfig
    scales: Tensor
    _coordinates: Tensor

    def __init__(self, setting: Setting, config: FNOConfig) -> None:
        super().__init__(setting, config)
        self.with_u0 = setting.inputs == "u0+xi"
        self.lift = nn.Linear(setting.frames + self.with_u0 + 1 + setting.dim, config.width)
        self.trunk = FourierTrunk(
            config.width,
            config.layers,
            config.modes,
            padding=config.padding,
            published=config.form == "published",
            lengths=setting.shape,
        )
        self.register_buffer("scales", torch.ones(3))  # of dw, u0, u
        self.register_buffer("_coordinates", coordinates(setting), persistent=False)

    @classmethod
    def largest_modes(cls, setting: Setting) -> tuple[int, ...]:
        return FourierTrunk.largest_modes(setting)

    def prepare(self, batch: Batch) -> Features:
        if batch.dw.shape[1] != self.setting.frames:
            raise UserError(
                f"model 'fno' has the {self.setting.frames} frames of the noise as input channels; "
                f"got {batch.dw.shape[1]}. It can predict on another grid, but not for another number of frames"
            )
        return {"dw": batch.dw, "u0": batch.u0} if self.with_u0 else {"dw": batch.dw}

    def calibrate(self, features: Features, target: Tensor) -> None:
        fit_units(self.scales, features["dw"][:, 1:], features.get("u0"), target)

    def forward(self, features: Features) -> Tensor:
        paths = (features["dw"] / self.scales[0]).movedim(0, -1).movedim(0, -1)  # (X.., B, T)
        if self.with_u0:
            paths = torch.cat([paths, (features["u0"] / self.scales[1]).movedim(0, -1)[..., None]], dim=-1)
        on_paths, on_places = self.lift.weight.split([paths.shape[-1], 1 + self.setting.dim], dim=1)
        places = nn.functional.linear(self._places(paths.shape[:-2]), on_places, self.lift.bias)
        h = nn.functional.linear(paths, on_paths) + places[..., None, :]  # (T, X.., B, width)
        out: Tensor = self.trunk(h.movedim(-2, 0)) * self.scales[2]
        return out

    def _places(self, points: torch.Size) -> Tensor:
        """Coordinates of the training grid, or of another grid of the same box."""
        if tuple(points) == self.setting.grid.points:
            return self._coordinates
        return coordinates(self.setting, points).to(self._coordinates)
