"""Base classes of models that use tree features: the features on any grid of the box, and the trunk of the networks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from spdebench.errors import UserError
from spdebench.models.base import Config, Features, OperatorModel
from spdebench.models.layers.coordinates import coordinates
from spdebench.models.layers.fourier import FourierTrunk
from spdebench.models.layers.linear import linear
from spdebench.models.regularity.features import Scales, TreeFeatures
from spdebench.models.regularity.schemes import Kind, linear_differences
from spdebench.models.regularity.trees import DEGREE, Tree, grow, linear_rule
from spdebench.tasks import Batch, Setting


@dataclass(frozen=True, kw_only=True)
class TreeConfig(Config):
    """The choice of trees and of the kernel.

    ``kernel="exact"`` is the semigroup of the equation. ``kernel="generator"`` is the linear part of the scheme that
    generated the data, which is unknown for real data; rows of tables with it say so and are not ranked. ``degree=8``
    adds I[I_c^3] for equations with a cubic term.
    """

    kernel: Kind = "exact"
    height: int = 2
    degree: float = DEGREE

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.height < 1:
            raise UserError(f"{type(self).__name__}: height must be at least 1, got {self.height}")


class TreeModel(OperatorModel):
    """Base of models whose features are the trees of their equation, (B, T, X.., F), in physical units."""

    needs_equation = True
    needs_rule = True
    any_grid = True
    redraws = False

    config: TreeConfig

    def __init__(self, setting: Setting, config: TreeConfig) -> None:
        super().__init__(setting, config)
        assert setting.equation is not None
        rule = setting.equation.rule or linear_rule(setting.equation)
        self.chosen: tuple[Tree, ...] = grow(rule, config.height, config.degree)
        self.trees = TreeFeatures(setting, self.chosen, config.kernel)
        self._on_other_grids: dict[tuple[tuple[int, ...], torch.device], TreeFeatures] = {}

    @classmethod
    def supports(cls, setting: Setting) -> None:
        super().supports(setting)
        if cls.needs_rule and setting.equation is not None and setting.equation.rule is None:
            raise UserError(
                f"model '{cls.name}' builds its features from an equation's rule, and {setting.label} declares none; "
                f"add a `rule` to the equation's class, or choose another model, such as linear or fno"
            )

    @classmethod
    def check_mixture(cls, settings: Sequence[Setting], config: Config) -> None:
        """Refuse equations with different linear parts, because all samples are integrated with one kernel."""
        assert isinstance(config, TreeConfig)
        first, *others = settings
        for other in others:
            assert first.equation is not None and other.equation is not None
            unlike = linear_differences(first.equation, other.equation, first.grid, first.dt, config.kernel)
            if unlike:
                values = ", ".join(f"{key} {a} and {b}" for key, (a, b) in unlike.items())
                raise UserError(
                    f"model '{cls.name}' has one kernel for all samples (kernel={config.kernel}), and the linear parts "
                    f"of these files differ: {values}; train it on each file alone, or a model without a kernel such "
                    f"as fno on all"
                )

    def prepare(self, batch: Batch) -> Features:
        return {"trees": self.trees_on(batch.dw)(batch.u0, batch.dw)}

    def feature_spec(self) -> dict[str, Any]:
        return {"kernel": self.config.kernel, "height": self.config.height, "degree": self.config.degree}

    def trees_on(self, field: Tensor) -> TreeFeatures:
        """The trees for the grid of a field (B, T, X..)."""
        frames, *points = field.shape[1:]
        if frames != self.setting.frames:
            raise UserError(
                f"model '{self.name}' integrates over {self.setting.frames} frames; got {frames}. "
                f"It can predict on another grid, but not for another number of frames"
            )
        if tuple(points) == self.setting.grid.points:
            return self.trees
        key = (tuple(points), field.device)
        if key not in self._on_other_grids:
            other = dataclasses.replace(self.setting, grid=self.setting.grid.with_points(points))
            with torch.inference_mode(False):
                made = TreeFeatures(other, self.chosen, self.config.kernel)
            self._on_other_grids[key] = made.to(field.device)
        return self._on_other_grids[key]


@dataclass(frozen=True, kw_only=True)
class TrunkConfig(TreeConfig):
    """The size of the trunk; ``modes`` are counted as in FNO: for each space axis, then for time."""

    width: int = 32
    layers: int = 4
    modes: tuple[int, ...] = (32, 24)
    padding: int = 6
    form: Literal["default", "published"] = "default"


class TrunkOnTrees(TreeModel):
    """u = trunk(lift [trees, ``extra`` further channels, t, x]), trees and u divided by their training rms.

    Both forms are the same function; ``form="published"`` stores the spectral weights as complex numbers.
    """

    dims = (1, 2)

    config: TrunkConfig
    places: Tensor

    def __init__(self, setting: Setting, config: TrunkConfig) -> None:
        super().__init__(setting, config)
        self.sizes, self.solution = Scales(len(self.trees.trees)), Scales(1)
        self.register_buffer("places", coordinates(setting), persistent=False)

    def add_trunk(self, extra: int = 0) -> None:
        """Create lift and trunk; subclasses call it after their own layers, which fixes the order of parameters."""
        c = self.config
        self.lift = nn.Linear(len(self.trees.trees) + extra + 1 + self.setting.dim, c.width)
        published = c.form == "published"
        self.trunk = FourierTrunk(
            c.width, c.layers, c.modes, padding=c.padding, published=published, lengths=self.setting.shape
        )

    @classmethod
    def largest_modes(cls, setting: Setting) -> tuple[int, ...]:
        return FourierTrunk.largest_modes(setting)

    def calibrate(self, features: Features, target: Tensor) -> None:
        self.sizes.fit(features["trees"])
        self.solution.fit(target.unsqueeze(-1))

    def decode(self, *channels: Tensor) -> Tensor:
        """u from groups of channels (B, T, X.., C); the lift is affine, so it is applied to each group separately."""
        places = self._places(channels[0])
        *weights, last = torch.split(self.lift.weight, [*(c.shape[-1] for c in channels), places.shape[-1]], dim=1)
        h = functional.linear(places, last, self.lift.bias)
        for values, weight in zip(channels, weights, strict=True):
            h = h + linear(values, weight)
        out: Tensor = self.trunk(h)
        return out * self.solution.size

    def _places(self, field: Tensor) -> Tensor:
        """Coordinates of the training grid, or of the grid of channels (B, T, X.., C) on the same box."""
        points = tuple(field.shape[2:-1])
        return self.places if points == self.setting.grid.points else coordinates(self.setting, points).to(self.places)
