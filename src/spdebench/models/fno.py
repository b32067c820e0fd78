"""Fourier neural operator:  u(t, x) = D L_n .. L_1 P [ dw(t_0..t_T, x), (u0(x)), t, x ].

(Li et al. 2021, arXiv:2010.08895.) P lifts the whole noise path at x, the same for every t, and the coordinates; the
trunk D L_n .. L_1 is that of `layers/fourier.py`.
"""

from __future__ import annotations

import dataclasses
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
    """``modes``: space axes, then time; m along a space axis keeps k = -m..m-1, along time w = 0..m-1."""

    width: int = 32
    layers: int = 3
    modes: tuple[int, ...] = (32, 25)
    padding: int = 6
    form: Literal["default", "published"] = "default"


class FNO(OperatorModel, name="fno"):
    """FNO on space and time at once; the paper's counts are those of ``form="published"``: 4,924,449 on phi41.

    The lift is affine, so the noise part is applied once for each x and broadcast over t: the same function as the
    reference's, which gives the path at x to the network T times over (an input of T x T a point). dw, u0 and u are
    measured in units of their root mean squares over the training part. Coordinates are those of the grid
    (`coordinates`), not j/(N-1). The two forms are one function; "published" keeps its weights as complex numbers.
    """

    title = "FNO"
    config_class = FNOConfig
    dims = (1, 2, 3)
    ours = ("u0+xi",)
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
                f"model 'fno' takes the noise of {self.setting.frames} frames as its input channels; "
                f"got {batch.dw.shape[1]}. Other points are fine, other frames are not"
            )
        return {"dw": batch.dw, "u0": batch.u0} if self.with_u0 else {"dw": batch.dw}

    def calibrate(self, features: Features, target: Tensor) -> None:
        fit_units(self.scales, features["dw"][:, 1:], features.get("u0"), target)

    def forward(self, features: Features) -> Tensor:
        paths = (features["dw"] / self.scales[0]).movedim(0, -1).movedim(0, -1)  # (X.., B, T)
        if self.with_u0:
            paths = torch.cat([paths, (features["u0"] / self.scales[1]).movedim(0, -1)[..., None]], dim=-1)
        per_path, per_place = self.lift.weight.split([paths.shape[-1], 1 + self.setting.dim], dim=1)
        places = nn.functional.linear(self._places(paths.shape[:-2]), per_place, self.lift.bias)
        h = nn.functional.linear(paths, per_path) + places[..., None, :]  # (T, X.., B, width)
        out: Tensor = self.trunk(h.movedim(-2, 0)) * self.scales[2]
        return out

    def _places(self, points: torch.Size) -> Tensor:
        if tuple(points) == self.setting.grid.points:
            return self._coordinates
        grid = self.setting.grid.with_points(points)
        return coordinates(dataclasses.replace(self.setting, grid=grid)).to(self._coordinates)
