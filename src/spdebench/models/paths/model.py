"""Common parts of models driven by increments: inputs, and normalisers of noise, initial datum and solution."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from spdebench.models.base import Config, Features, OperatorModel
from spdebench.models.layers.normalise import Scale, Standard
from spdebench.tasks import Batch, Setting


class DrivenModel(OperatorModel):
    """Base of models driven by dw. W is divided by the root mean square of W_T over the training part.

    u0 is standardised by two numbers, u by a mean field of ``shape`` and one number.
    """

    causal = True

    def __init__(self, setting: Setting, config: Config, shape: Sequence[int] = ()) -> None:
        super().__init__(setting, config)
        self.noise, self.initial, self.solution = Scale(), Standard(), Standard(shape)

    def prepare(self, batch: Batch) -> Features:
        return {"u0": batch.u0, "dw": batch.dw}

    def calibrate(self, features: Features, target: Tensor) -> None:
        self.noise.fit(features["dw"].sum(1))
        self.initial.fit(features["u0"])
        self.solution.fit(target)
