"""How a model is trained: every option that changes a number, checked on construction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from spdebench import spec
from spdebench.errors import UserError
from spdebench.models import MODELS
from spdebench.tasks import Setting, recommended

_LEAST: dict[str, float] = {
    "epochs": 0,
    "batch": 1,
    "weight_decay": 0,
    "patience": 0,
    "step": 1,
    "min_lr": 0,
    "stop": 0,
    "delta": 0,
    "clip": 0,
    "seed": 0,
}


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Adam with L2-coupled weight decay on a relative loss; the defaults are what most of the paper's models share.

    ``plateau`` multiplies the rate by ``factor`` after more than ``patience`` epochs without a better validation,
    ``step`` after every ``step`` epochs, ``cosine`` runs from ``lr`` to ``min_lr`` over all epochs. Training stops
    after ``stop`` epochs (0: never) in which validation did not fall by the share ``delta``. The reference takes
    ``delta`` as an absolute difference and gates the checkpoint with it, which freezes good models early; here it is
    relative, as the paper says, and the best weights are kept at any improvement. Validation is the relative L2 error
    whatever the ``loss``, so that all runs compare. ``clip`` bounds the norm of the gradient (0: not at all).
    """

    epochs: int = 1000
    batch: int = 20
    lr: float = 1e-3
    weight_decay: float = 1e-4
    scheduler: Literal["plateau", "step", "cosine", "none"] = "plateau"
    patience: int = 50
    factor: float = 0.1
    step: int = 50
    min_lr: float = 1e-7
    stop: int = 100
    delta: float = 1e-4
    clip: float = 0.0
    loss: Literal["rel_l2", "w12"] = "rel_l2"
    seed: int = 0
    precision: Literal["float32", "bfloat16"] = "float32"
    compile: bool = False

    def __post_init__(self) -> None:
        spec.check(self, "training")
        for key, least in _LEAST.items():
            if getattr(self, key) < least:
                raise UserError(f"training: {key} must be at least {least}, got {getattr(self, key)}")
        if self.lr <= 0:
            raise UserError(f"training: lr must be positive, got {self.lr:g}")
        if not 0 < self.factor < 1:
            raise UserError(f"training: factor must lie between 0 and 1, got {self.factor:g}")
        if self.delta >= 1:
            raise UserError(f"training: delta is a share below 1, got {self.delta:g}")
        if self.seed >= 2**63:
            raise UserError(f"training: seed must be below 2^63, got {self.seed}")


def options_for(model: str, setting: Setting, **given: Any) -> TrainOptions:
    """Given values over the recommended ones for this model and data over the defaults.

    A model that is not trained by gradients has none of them: whatever is given, its options are those of 0 epochs, so
    that it is one run and not one for each seed.
    """
    options = spec.build(TrainOptions, {**recommended(model, setting).training, **given}, "training")
    if not MODELS[model].trainable:
        return TrainOptions(epochs=0)
    if options.epochs < 1:
        raise UserError(f"training: epochs must be at least 1 for '{model}', got {options.epochs}")
    return options
