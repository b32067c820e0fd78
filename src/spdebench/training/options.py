"""Training options: every option that changes a number, checked on construction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from spdebench import spec
from spdebench.errors import UserError
from spdebench.models import MODELS, OperatorModel
from spdebench.tasks import Setting, recommended

Scheduler = Literal["plateau", "step", "cosine", "none"]
Loss = Literal["rel_l2", "w12", "energy", "flow"]
Precision = Literal["float32", "bfloat16"]
LAW_LOSSES: Mapping[str, str] = {"energy": "energy_score", "flow": "flow_loss"}
"""Losses with which laws are learned, and the name of their validation error in the log."""

_LEAST: dict[str, float] = {
    "epochs": 0,
    "batch_size": 1,
    "weight_decay": 0,
    "plateau_patience": 0,
    "decay_every": 1,
    "min_learning_rate": 0,
    "early_stop_patience": 0,
    "early_stop_delta": 0,
    "clip_norm": 0,
    "draws": 2,
    "seed": 0,
}


def _renamed(default: Any, key: str) -> Any:
    """A field whose key in files and hashes is its old name."""
    return field(default=default, metadata={"key": key})


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Adam with L2-coupled weight decay on a relative loss; the defaults are what most of the paper's models share.

    The scheduler ``plateau`` multiplies the learning rate by ``decay_factor`` after more than ``plateau_patience``
    epochs without a better validation error; ``step`` does so every ``decay_every`` epochs; ``cosine`` goes from
    ``learning_rate`` to ``min_learning_rate`` over all epochs. Training stops after ``early_stop_patience`` epochs (0:
    never) in which the validation error did not fall by the relative amount ``early_stop_delta``. The authors' code
    takes this amount as an absolute difference and also keeps weights by it, which freezes good models early; here it
    is relative, as the paper says, and the best weights are kept at any improvement. Validation is the relative L2
    error whatever the ``loss``, so that all runs compare. ``clip_norm`` bounds the norm of the gradient (0: no bound).

    ``loss="energy"`` is for tasks that show only a part of the noise: the other part is drawn ``draws`` times for each
    sample and epoch, and the energy score of these predictions is the loss and the validation error.
    ``loss="flow"`` is for models that learn a law by flow matching: the mean square error of the velocity at one random
    time and state of each sample and epoch. Validation is the same error at times and states that never change.
    """

    epochs: int = 1000
    batch_size: int = _renamed(20, "batch")
    learning_rate: float = _renamed(1e-3, "lr")
    weight_decay: float = 1e-4
    scheduler: Scheduler = "plateau"
    plateau_patience: int = _renamed(50, "patience")
    decay_factor: float = _renamed(0.1, "factor")
    decay_every: int = _renamed(50, "step")
    min_learning_rate: float = _renamed(1e-7, "min_lr")
    early_stop_patience: int = _renamed(100, "stop")
    early_stop_delta: float = _renamed(1e-4, "delta")
    clip_norm: float = _renamed(0.0, "clip")
    loss: Loss = "rel_l2"
    draws: int = field(default=2, metadata={"legacy": 2})
    seed: int = 0
    precision: Precision = "float32"
    compile: bool = False

    def __post_init__(self) -> None:
        spec.check(self, "training")
        for key, least in _LEAST.items():
            if getattr(self, key) < least:
                raise UserError(f"training: {key} must be at least {least}, got {getattr(self, key)}")
        if self.draws != 2 and self.loss != "energy":
            raise UserError(f"training: draws={self.draws} is for loss=energy, the loss is {self.loss}")
        if self.learning_rate <= 0:
            raise UserError(f"training: learning_rate must be positive, got {self.learning_rate:g}")
        if not 0 < self.decay_factor < 1:
            raise UserError(f"training: decay_factor must lie between 0 and 1, got {self.decay_factor:g}")
        if self.early_stop_delta >= 1:
            raise UserError(f"training: early_stop_delta is relative and below 1, got {self.early_stop_delta:g}")
        if self.seed >= 2**63:
            raise UserError(f"training: seed must be below 2^63, got {self.seed}")


def options_for(model: str, setting: Setting, **given: Any) -> TrainOptions:
    """The options: given values, else those recommended for this model and data, else the defaults.

    A model that is not trained by gradients ignores them all: its options are those of 0 epochs, so that it has one
    run and not one per seed.
    """
    old = spec.renamed(TrainOptions)
    advised, chosen = (spec.current_names(v, old, "training") for v in (recommended(model, setting).training, given))
    options = spec.build(TrainOptions, {**advised, **chosen}, "training")
    if not MODELS[model].trainable:
        return TrainOptions(epochs=0)
    if options.epochs < 1:
        raise UserError(f"training: epochs must be at least 1 for '{model}', got {options.epochs}")
    if options.loss in LAW_LOSSES:
        check_law(model, setting, options.loss)
    return options


def learns_laws(model: type[OperatorModel]) -> bool:
    """Whether a model can be trained with its ``law_loss``; loss=energy needs features that are cheap to recompute."""
    return model.trainable and (model.law_loss == "flow" or (model.redraws and not model.costly_features))


def check_law(model: str, setting: Setting, loss: Loss) -> None:
    """Raise a one-line error unless the model can be trained with this loss of a law on data of this setting."""
    cls = MODELS[model]
    usable = (name for name in MODELS if learns_laws(MODELS[name]) and setting.dim in MODELS[name].dims)
    able = ", ".join(name for name in usable if MODELS[name].law_loss == loss) or "none"
    if cls.law_loss != loss:
        raise UserError(f"model '{model}' is not trained with loss={loss}; models that are: {able}")
    if not learns_laws(cls):
        raise UserError(
            f"loss=energy computes features anew for each draw of the noise, for which those of '{model}' are too "
            f"costly; models that do: {able}"
        )
    if setting.seen is None:
        raise UserError(
            f"loss={loss} learns the law of u given a part of the noise; add seen=K, and generate the data with "
            "--seen K"
        )
    if not setting.partial:
        raise UserError(
            f"loss={loss} needs noise that is not seen; seen={setting.seen} is all of it, choose a smaller one"
        )
